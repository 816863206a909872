#include "stores/redis/reading.hpp"

#include "stores/batch/sealed.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace holdfast::stores::redis {
namespace {

/// How much is asked for at once: Redis serves nobody else meanwhile.
constexpr std::size_t locks_at_once = 256;
constexpr std::size_t events_at_once = 512;

std::string text_of(Instant instant) { return std::to_string(instant.time_since_epoch().count()); }

/// The names of an answer, in its order. What is no name was not put there by us.
Result<std::vector<LockName>> names_in(Value list) {
    std::vector<LockName> names;
    for (std::size_t i = 0; i < list.size(); ++i) {
        auto name = LockName::parse(list[i].text());
        if (!name) return fail(Errc::record_corrupt, "the index of names in Redis contains what is no name");
        names.push_back(std::move(*name));
    }
    return names;
}

bool shows(const ListQuery& query, const kernel::Record& record) {
    if (!record.name.text().starts_with(query.prefix)) return false;
    if (!query.with_free && !record.held) return false;
    return !query.changed_since || record.changed_at >= *query.changed_since;
}

/// Adds those of `names` that the query asks for.
Result<void> add_statuses(Remote& remote, std::span<const LockName> names, const ListQuery& query, Deadline deadline,
                          std::vector<LockStatus>& found) {
    for (std::size_t from = 0; from < names.size(); from += locks_at_once) {
        std::vector<Wanted> wanted;
        for (const LockName& name : names.subspan(from, std::min(locks_at_once, names.size() - from)))
            wanted.push_back({.name = name});
        const auto looked = remote.look(wanted, IfMissing::nothing, deadline);
        if (!looked) return std::unexpected(looked.error());
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            Sight sight;
            const auto view = view_of(looked->answer.value(), i, wanted[i].name, looked->now, sight);
            if (!view) return std::unexpected(view.error());
            if (view->record.seq > 0 && shows(query, view->record))
                found.push_back(kernel::status_of(view->record, view->waiters, looked->now));
        }
    }
    return {};
}

/// By pages, each beginning behind the last name of the one before.
Result<std::vector<LockStatus>> list_by_name(Remote& remote, const ListQuery& query, Deadline deadline) {
    const std::string key = query.with_free ? remote.keys().names() : remote.keys().held();
    // No name has this byte, so all names with the prefix are below it.
    const std::string end = "(" + query.prefix + "\xff";
    std::string from = "[" + query.prefix;
    std::vector<LockStatus> found;
    while (true) {
        const Command page{"ZRANGEBYLEX", key, from, end, "LIMIT", "0", std::to_string(locks_at_once)};
        const auto answer = remote.pool().ask(page, deadline);
        if (!answer) return std::unexpected(answer.error());
        const auto names = names_in(answer->value());
        if (!names) return std::unexpected(names.error());
        if (names->empty()) return found;
        if (auto added = add_statuses(remote, *names, query, deadline, found); !added)
            return std::unexpected(added.error());
        from = "(" + names->back().text();
    }
}

Result<std::vector<LockStatus>> list_changed(Remote& remote, const ListQuery& query, Deadline deadline) {
    const auto answer =
        remote.pool().ask({"ZRANGEBYSCORE", remote.keys().changed(), text_of(*query.changed_since), "+inf"}, deadline);
    if (!answer) return std::unexpected(answer.error());
    auto names = names_in(answer->value());
    if (!names) return std::unexpected(names.error());
    std::erase_if(*names, [&](const LockName& name) { return !name.text().starts_with(query.prefix); });
    std::ranges::sort(*names);
    std::vector<LockStatus> found;
    if (auto added = add_statuses(remote, *names, query, deadline, found); !added)
        return std::unexpected(added.error());
    return found;
}

bool older(const AuditEvent& a, const AuditEvent& b) {
    return std::tie(a.at, a.name, a.seq) < std::tie(b.at, b.name, b.seq);
}

/// The newest `limit` events of one lock after `after_seq` and `since`, oldest first.
///
/// Read from the end, until a whole page is older than `since`: a clock that was put back by a moment does
/// not cut the log short.
Result<std::vector<AuditEvent>> events_of(Remote& remote, const HistoryQuery& query, const LockName& name,
                                          std::optional<Instant> since, Deadline deadline) {
    const std::string key = remote.keys().audit(name);
    const auto length = remote.pool().ask({"LLEN", key}, deadline);
    if (!length) return std::unexpected(length.error());
    std::vector<AuditEvent> newest_first;
    const auto enough = [&] { return query.limit && newest_first.size() >= *query.limit; };
    bool is_over = false;
    for (std::uint64_t end = length->value().number().value_or(0); end > 0 && !is_over && !enough();) {
        const std::uint64_t begin = end - std::min<std::uint64_t>(end, events_at_once);
        const auto page = remote.pool().ask({"LRANGE", key, std::to_string(begin), std::to_string(end - 1)}, deadline);
        if (!page) return std::unexpected(page.error());
        bool all_older = since.has_value();
        for (std::size_t i = page->value().size(); i > 0 && !is_over && !enough(); --i) {
            auto event = unsealed_event(page->value()[i - 1].bytes());
            if (!event) return std::unexpected(event.error());
            if (event->name != name) return fail(Errc::record_corrupt, "an event of the audit log is of another lock");
            is_over = query.name && event->seq <= query.after_seq;
            const bool is_recent = !since || event->at >= *since;
            all_older = all_older && !is_recent;
            if (is_recent && !is_over) newest_first.push_back(std::move(*event));
        }
        is_over = is_over || all_older;
        end = begin;
    }
    std::ranges::reverse(newest_first);
    return newest_first;
}

/// All locks, those that changed last first: once there are enough events, only locks that changed after the
/// oldest of them can add any.
Result<std::vector<AuditEvent>> events_of_all(Remote& remote, const HistoryQuery& query, Deadline deadline) {
    std::vector<AuditEvent> found;
    std::set<LockName> done;
    std::optional<Instant> since = query.since;
    for (std::size_t from = 0;; from += locks_at_once) {
        const Command page{
            "ZREVRANGEBYSCORE",   remote.keys().changed(),      "+inf", since ? text_of(*since) : "-inf", "LIMIT",
            std::to_string(from), std::to_string(locks_at_once)};
        const auto answer = remote.pool().ask(page, deadline);
        if (!answer) return std::unexpected(answer.error());
        const auto names = names_in(answer->value());
        if (!names) return std::unexpected(names.error());
        if (names->empty()) return found;
        for (const LockName& name : *names) {
            // A lock that changes meanwhile moves to the front and pushes others onto the next page.
            if (!done.insert(name).second) continue;
            auto events = events_of(remote, query, name, since, deadline);
            if (!events) return std::unexpected(events.error());
            std::ranges::move(*events, std::back_inserter(found));
            if (!query.limit || found.size() < *query.limit) continue;
            std::ranges::sort(found, older);
            found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(*query.limit));
            if (!found.empty()) since = found.front().at;
        }
    }
}

}  // namespace

Result<LockStatus> read_status(Remote& remote, const LockName& name, Deadline deadline) {
    const std::vector<Wanted> wanted{{.name = name}};
    const auto looked = remote.look(wanted, IfMissing::nothing, deadline);
    if (!looked) return std::unexpected(looked.error());
    if (!looked->exists()) return kernel::status_of(kernel::blank(name), 0, looked->now);
    Sight sight;
    const auto view = view_of(looked->answer.value(), 0, name, looked->now, sight);
    if (!view) return std::unexpected(view.error());
    return kernel::status_of(view->record, view->waiters, looked->now);
}

Result<std::vector<LockStatus>> read_list(Remote& remote, const ListQuery& query, Deadline deadline) {
    auto found = query.changed_since ? list_changed(remote, query, deadline) : list_by_name(remote, query, deadline);
    if (!found) return found;
    if (const auto same = remote.confirm(deadline); !same) return std::unexpected(same.error());
    return found;
}

Result<std::vector<AuditEvent>> read_history(Remote& remote, const HistoryQuery& query, Deadline deadline) {
    Result<std::vector<AuditEvent>> found{};
    if (query.limit != 0U)
        found = query.name ? events_of(remote, query, *query.name, query.since, deadline)
                           : events_of_all(remote, query, deadline);
    if (!found) return found;
    if (!query.name) std::ranges::sort(*found, older);
    if (const auto same = remote.confirm(deadline); !same) return std::unexpected(same.error());
    return found;
}

}  // namespace holdfast::stores::redis
