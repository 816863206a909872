#include "stores/http/read.hpp"

#include "json/event.hpp"
#include "json/fields.hpp"
#include "json/lock.hpp"
#include "stores/common/query.hpp"
#include "stores/http/codec.hpp"
#include "values/text.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace holdfast::stores::http {
namespace {

/// How many locks or events are asked for at once.
constexpr std::size_t page_size = 1000;
/// The most that a daemon gives.
constexpr std::size_t largest_page = 10'000;

/// What `read` makes of the document at `path`.
template <class Read>
auto read_document(Server& server, const Path& path, const base::CallBudget& budget, Read read)
    -> decltype(read(std::declval<const json::Node&>())) {
    const auto node = server.read(path.text(), budget);
    if (!node) return std::unexpected(node.error());
    auto value = read(*node);
    if (!value) return std::unexpected(not_understood(server.address(), value.error()));
    return value;
}

/// A part of a list, and whether there is more.
template <class Item>
struct Page {
    std::vector<Item> items{};
    bool is_last = true;
    std::optional<Instant> read_until{};  ///< The time of the newest event that was looked at.
};

Result<Page<AuditEvent>> read_page(Server& server, const HistoryQuery& query, std::size_t limit,
                                   base::CallBudget& budget) {
    Path path("/v1/history");
    if (query.name) path.add("name", query.name->text());
    if (query.since) path.add("since", *query.since);
    if (query.after_seq > 0) path.add("after_seq", query.after_seq);
    path.add("limit", std::uint64_t{limit});
    path.add("which", query.which == HistoryQuery::Which::newest ? "newest" : "oldest");
    auto page = read_document(server, path, budget, [](const json::Node& node) -> Result<Page<AuditEvent>> {
        auto events = json::read_events(node);
        if (!events) return std::unexpected(events.error());
        json::Fields in(node);
        Page<AuditEvent> found{std::move(*events), !in.is_true("more"), in.time_if("read_until")};
        if (in.error()) return std::unexpected(*in.error());
        return found;
    });
    if (page) budget.answered();
    return page;
}

/// As much of `text` as can be asked for. What is compared are bytes, and half a character is some, too.
std::string_view beginning_in_utf8(std::string_view text) {
    while (!is_utf8(text)) text.remove_suffix(1);
    return text;
}

auto place_of(const AuditEvent& event) { return std::tie(event.at, event.name, event.seq); }

/// All events that the query selects, whatever its limit: those of one lock by their numbers, and those of all by
/// their time, which several can have.
Result<std::vector<AuditEvent>> read_all(Server& server, HistoryQuery query, base::CallBudget& budget) {
    query.which = HistoryQuery::Which::oldest;
    std::vector<AuditEvent> all;
    std::size_t size = page_size;
    while (true) {
        auto page = read_page(server, query, size, budget);
        if (!page) return std::unexpected(page.error());
        auto& [events, is_last, read_until] = *page;
        if (!all.empty())
            std::erase_if(events, [&](const AuditEvent& event) {
                return query.name ? event.seq <= all.back().seq : place_of(event) <= place_of(all.back());
            });
        const bool stands_still = events.empty() && (query.name || !read_until || query.since == read_until);
        std::ranges::move(events, std::back_inserter(all));
        if (is_last) return all;
        if (stands_still && size >= largest_page)
            return fail(Errc::store_unavailable, "more events have the same time than a daemon gives at once");
        size = stands_still ? std::min(2 * size, largest_page) : page_size;
        if (query.name && !all.empty()) query.after_seq = all.back().seq;
        if (!query.name && read_until) query.since = read_until;
    }
}

}  // namespace

Result<LockStatus> read_status(Server& server, const LockName& name, const base::CallBudget& budget) {
    return read_document(server, Path("/v1/lock").add("name", name.text()), budget,
                         [&](const json::Node& node) -> Result<LockStatus> {
                             auto lock = json::read_lock(node);
                             if (!lock) return std::unexpected(lock.error());
                             if (lock->status.name != name) return fail(Errc::usage, "it is about another lock");
                             return std::move(lock->status);
                         });
}

Result<std::vector<LockStatus>> read_list(Server& server, const ListQuery& query, base::CallBudget& budget) {
    std::vector<LockStatus> all;
    std::string after(beginning_in_utf8(query.after));
    while (true) {
        const std::size_t left = query.limit ? *query.limit - all.size() : page_size;
        const std::size_t size = std::min(left, page_size);
        if (size == 0) return all;
        Path path("/v1/locks");
        path.add("prefix", beginning_in_utf8(query.prefix));
        if (query.with_free) path.add("all", "1");
        if (query.changed_since) path.add("changed_since", *query.changed_since);
        if (!after.empty()) path.add("after", after);
        if (query.with_unreadable) path.add("unreadable", "1");
        path.add("limit", std::uint64_t{size});
        auto page = read_document(server, path, budget, [&](const json::Node& node) -> Result<Page<LockStatus>> {
            auto locks = json::read_locks(node);
            if (!locks) return std::unexpected(locks.error());
            json::Fields in(node);
            Page<LockStatus> found{std::move(*locks), !in.is_true("more")};
            // Otherwise a daemon that repeats itself would be asked for ever.
            if (!found.is_last && (found.items.empty() || found.items.front().name.text() <= after))
                in.refuse("locks", "does not go on where the page before ended");
            if (in.error()) return std::unexpected(*in.error());
            return found;
        });
        if (!page) return std::unexpected(page.error());
        budget.answered();
        if (!page->items.empty()) after = page->items.back().name.text();
        std::erase_if(page->items, [&](const LockStatus& lock) {
            return !lock.name.text().starts_with(query.prefix) || lock.name.text() <= query.after;
        });
        std::ranges::move(page->items, std::back_inserter(all));
        if (page->is_last) return all;
    }
}

Result<std::vector<AuditEvent>> read_history(Server& server, const HistoryQuery& query, base::CallBudget& budget) {
    if (query.limit && *query.limit == 0) return {};
    if (query.limit && *query.limit <= largest_page) {
        auto page = read_page(server, query, *query.limit, budget);
        if (!page) return std::unexpected(page.error());
        return std::move(page->items);
    }
    auto all = read_all(server, query, budget);
    if (all) cut_to_limit(*all, query);
    return all;
}

Result<EventPage> read_events(Server& server, const EventCursor& after, std::size_t limit,
                              const base::CallBudget& budget) {
    Path path("/v1/events");
    path.add("since", after.text).add("limit", std::uint64_t{std::min(limit, page_size)});
    return read_document(server, path, budget, [](const json::Node& node) { return json::read_event_page(node); });
}

Result<EventCursor> read_end_of_events(Server& server, const base::CallBudget& budget) {
    return read_document(server, Path("/v1/events").add("since", "end").add("limit", std::uint64_t{0}), budget,
                         [](const json::Node& node) -> Result<EventCursor> {
                             auto page = json::read_event_page(node);
                             if (!page) return std::unexpected(page.error());
                             return std::move(page->next);
                         });
}

}  // namespace holdfast::stores::http
