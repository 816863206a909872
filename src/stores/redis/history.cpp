#include "stores/redis/history.hpp"

#include "stores/common/query.hpp"
#include "stores/redis/audit_log.hpp"
#include "stores/redis/read.hpp"

#include <algorithm>
#include <set>

namespace holdfast::stores::redis {
namespace {

using Events = AuditLog::Events;

/// How many are asked for at once: Redis serves nobody else meanwhile.
constexpr std::size_t events_at_once = 512;

std::size_t size_of_page(const HistoryQuery& query, const Events& found) {
    return std::min(events_at_once, query.limit.value_or(events_at_once + found.size()) - found.size());
}

/// The newest events of one lock that the query selects, oldest first.
///
/// Read from the end, until a whole page is older than `since`: a clock that was put back by a moment does
/// not cut the log short.
Result<Events> newest_of(AuditLog& log, const HistoryQuery& query) {
    Events newest_first;
    const auto enough = [&] { return query.limit && newest_first.size() >= *query.limit; };
    const auto size = [&] { return query.since ? events_at_once : size_of_page(query, newest_first); };
    std::optional<std::uint64_t> reached;
    for (bool is_over = false; !is_over && !enough();) {
        const std::size_t asked = size();
        auto page = reached ? log.around(*reached, asked, 0) : log.newest(asked);
        if (!page) return page;
        if (reached) std::erase_if(*page, [&](const AuditEvent& event) { return event.seq >= *reached; });
        // An event that is missing was pruned meanwhile, together with all older ones.
        if (page->empty()) break;
        reached = page->front().seq;
        bool all_older = query.since.has_value();
        for (auto event = page->rbegin(); event != page->rend() && !is_over && !enough(); ++event) {
            is_over = event->seq <= query.after_seq;
            const bool is_recent = !query.since || event->at >= *query.since;
            all_older = all_older && !is_recent;
            if (is_recent && !is_over) newest_first.push_back(std::move(*event));
        }
        is_over = is_over || all_older || page->size() < asked;
    }
    std::ranges::reverse(newest_first);
    return newest_first;
}

/// The oldest `limit` events of one lock after `after_seq`.
Result<Events> oldest_of(AuditLog& log, const HistoryQuery& query) {
    Events found;
    std::uint64_t reached = query.after_seq;
    for (bool is_over = false; !is_over && found.size() < *query.limit;) {
        const std::size_t size = size_of_page(query, found);
        Result<Events> page{};
        if (reached > 0) page = log.around(reached, 0, size);
        if (page && page->empty()) {
            // It was pruned, perhaps just now: then there would be a gap after the events that were found before.
            found.clear();
            page = log.oldest(size);
        }
        if (!page) return page;
        std::erase_if(*page, [&](const AuditEvent& event) { return event.seq <= reached; });
        is_over = page->size() < size;
        if (!page->empty()) reached = page->back().seq;
        std::ranges::move(*page, std::back_inserter(found));
    }
    cut_to_limit(found, query);
    return found;
}

/// Of the lock that the query names.
Result<Events> events_of(Remote& remote, const HistoryQuery& query, Deadline deadline) {
    AuditLog log(remote, *query.name, deadline);
    if (query.which == HistoryQuery::Which::newest || !query.limit) return newest_of(log, query);
    if (!query.since) return oldest_of(log, query);
    // The first of them can only be found from the end.
    HistoryQuery all = query;
    all.limit.reset();
    auto found = newest_of(log, all);
    if (found) cut_to_limit(*found, query);
    return found;
}

/// All locks, those that changed last first: once there are enough of the newest events, only locks that changed after
/// the oldest of them can add any. Of the oldest events every lock may have some.
Result<Events> events_of_all(Remote& remote, const HistoryQuery& query, Deadline deadline) {
    Events found;
    std::set<LockName> done;
    std::optional<Instant> since = query.since;
    for (std::size_t from = 0;; from += locks_at_once) {
        const Command page{
            "ZREVRANGEBYSCORE",   remote.keys().changed(),      "+inf", since ? score_of(*since) : "-inf", "LIMIT",
            std::to_string(from), std::to_string(locks_at_once)};
        const auto answer = remote.server().ask(page, deadline);
        if (!answer) return std::unexpected(answer.error());
        const auto names = names_in(answer->value());
        if (!names) return std::unexpected(names.error());
        if (names->empty()) break;
        for (const LockName& name : *names) {
            // A lock that changes meanwhile moves to the front and pushes others onto the next page.
            if (!done.insert(name).second) continue;
            auto events =
                events_of(remote, {.name = name, .since = since, .limit = query.limit, .which = query.which}, deadline);
            if (!events) return events;
            std::ranges::move(*events, std::back_inserter(found));
            if (!query.limit || found.size() < *query.limit) continue;
            sort_by_time(found);
            cut_to_limit(found, query);
            if (query.which == HistoryQuery::Which::newest) since = found.front().at;
        }
    }
    sort_by_time(found);
    return found;
}

}  // namespace

Result<std::vector<AuditEvent>> read_history(Remote& remote, const HistoryQuery& query, Deadline deadline) {
    Result<Events> found{};
    if (query.limit != 0U)
        found = query.name ? events_of(remote, query, deadline) : events_of_all(remote, query, deadline);
    if (!found) return found;
    if (const auto same = remote.confirm(deadline); !same) return std::unexpected(same.error());
    return found;
}

}  // namespace holdfast::stores::redis
