#include "client/event_reader.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::client {
namespace {

constexpr std::size_t events_in_page = 1000;
/// How many events of a lock's history are read first if it is not known how many are missing.
constexpr std::uint64_t first_look_back = 64;

/// A store that was emptied or restored gives a lock numbers that it had before. Its tokens never fall.
template <class Last>
bool begins_again(const Last& last, const AuditEvent& event) {
    return event.seq <= last.seq && event.token > last.token;
}

}  // namespace

Result<void> EventReader::skip_to_end(Store& store, Deadline deadline) {
    auto end = store.end_of_events(deadline);
    if (!end) return std::unexpected(end.error());
    cursor_ = std::move(*end);
    last_.clear();
    ready_.clear();
    // Where pages overlap, the following pages repeat events that exist already: read past them.
    for (bool is_last = false; !is_last;) {
        auto page = store.events(cursor_, events_in_page, deadline);
        if (!page) return std::unexpected(page.error());
        for (const AuditEvent& event : page->events) has_read(event);
        cursor_ = std::move(page->next);
        is_last = page->is_last;
    }
    return {};
}

Result<std::vector<AuditEvent>> EventReader::next(Store& store, Deadline deadline) {
    if (auto taken = take_page(store, deadline); !taken) return std::unexpected(taken.error());
    return std::exchange(ready_, {});
}

void EventReader::has_read(const AuditEvent& event) {
    const auto [known, is_new] = last_.try_emplace(event.name, Last{event.seq, event.token, event.at});
    if (!is_new && (event.seq > known->second.seq || begins_again(known->second, event)))
        known->second = {event.seq, event.token, event.at};
}

/// After an error the cursor stays: the page is read again, and events that were returned before are skipped.
Result<void> EventReader::take_page(Store& store, Deadline deadline) {
    auto page = store.events(cursor_, events_in_page, deadline);
    if (!page) return std::unexpected(page.error());
    for (AuditEvent& event : page->events) {
        const auto known = last_.find(event.name);
        const bool is_known = known != last_.end() && !begins_again(known->second, event);
        if (is_known && event.seq <= known->second.seq) continue;
        Result<void> filled{};
        if (is_known)
            filled = fill_hole(store, event, known->second.seq, deadline);
        else if (page->unsettled_since)
            filled = fill_unsettled(store, event, *page->unsettled_since, deadline);
        if (!filled) return filled;
        const LockName name = event.name;
        give_out(std::move(event));
        // Events that come only once need not be remembered.
        if (!page->unsettled_since) last_.erase(name);
    }
    cursor_ = std::move(page->next);
    is_at_end_ = page->is_last;
    // Older events are not repeated, so they need not be remembered.
    if (page->unsettled_since && last_.size() > remembered_)
        std::erase_if(last_, [&](const auto& one) { return one.second.at < *page->unsettled_since; });
    else if (!page->unsettled_since && page->is_last)
        last_.clear();
    return {};
}

/// An event that is missing between two others was committed before the second of them. So if the history does not have
/// it, it was pruned.
Result<void> EventReader::fill_hole(Store& store, const AuditEvent& event, std::uint64_t after_seq, Deadline deadline) {
    while (after_seq + 1 < event.seq) {
        auto missing = store.history(
            {.name = event.name, .after_seq = after_seq, .limit = events_in_page, .which = HistoryQuery::Which::oldest},
            deadline);
        if (!missing) return std::unexpected(missing.error());
        const std::uint64_t before = after_seq;
        for (AuditEvent& one : *missing) {
            if (one.seq >= event.seq) return {};
            after_seq = one.seq;
            give_out(std::move(one));
        }
        if (after_seq == before) return {};
    }
    return {};
}

/// Nothing is known of the lock, or it has begun again. A page can have `event` and not an older one that was committed
/// late, just before it; so all that are not older than `since` come first.
Result<void> EventReader::fill_unsettled(Store& store, const AuditEvent& event, Instant since, Deadline deadline) {
    if (event.seq == 1) return {};
    for (std::uint64_t back = first_look_back;; back *= 8) {
        const std::uint64_t after_seq = event.seq > back ? event.seq - 1 - back : 0;
        auto found = store.history({.name = event.name,
                                    .since = since,
                                    .after_seq = after_seq,
                                    .limit = static_cast<std::size_t>(std::min(back, event.seq - 1)),
                                    .which = HistoryQuery::Which::oldest},
                                   deadline);
        if (!found) return std::unexpected(found.error());
        const bool reaches_back = after_seq == 0 || found->empty() || found->front().seq > after_seq + 1;
        if (!reaches_back) continue;
        for (AuditEvent& one : *found)
            if (one.seq < event.seq) give_out(std::move(one));
        return {};
    }
}

void EventReader::give_out(AuditEvent event) {
    last_.insert_or_assign(event.name, Last{event.seq, event.token, event.at});
    ready_.push_back(std::move(event));
}

}  // namespace holdfast::client
