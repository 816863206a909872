#include "stores/memory/memory_store.hpp"

#include "kernel/step.hpp"
#include "stores/common/event_cursor.hpp"
#include "stores/common/query.hpp"
#include "stores/common/wake_hub.hpp"
#include "stores/memory/wait.hpp"

#include <algorithm>
#include <mutex>
#include <ranges>

namespace holdfast::stores {
namespace {

using kernel::Decision;
using memory::Entry;

constexpr std::string_view cursor_form = "memory";

class MemoryStore final : public Store {
public:
    explicit MemoryStore(const Clock& clock) : Store(clock), clock_(clock) {}

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        std::vector<Change> changes;
        auto replies = run_steps(requests, deadline, changes);
        hub_.announce(changes);
        return replies;
    }

    Result<LockStatus> inspect(const LockName& name, Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        return status(name);
    }

    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        const Instant now = clock_.wall();
        std::vector<LockStatus> found;
        for (const auto& [name, entry] : locks_) {
            if (entry.record.seq == 0 || !is_selected(query, entry.record)) continue;
            if (query.limit && found.size() >= *query.limit) break;
            found.push_back(kernel::status_of(entry.record, entry.waiters(now), now));
        }
        return found;
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        std::vector<AuditEvent> found;
        for (const auto& [name, entry] : locks_) {
            if (query.name && *query.name != name) continue;
            for (const AuditEvent& event : entry.events | std::views::values)
                if ((!query.since || event.at >= *query.since) && (!query.name || event.seq > query.after_seq))
                    found.push_back(event);
        }
        if (!query.name) sort_by_time(found);
        cut_to_limit(found, query);
        return found;
    }

    Result<EventPage> events(const EventCursor& after, std::size_t limit, Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        const auto from = NumberedCursor::read(after, cursor_form, store_id_);
        if (!from) return std::unexpected(from.error());
        std::map<std::int64_t, const AuditEvent*> found;
        for (const auto& [name, entry] : locks_)
            for (auto event = entry.events.upper_bound(from->number); event != entry.events.end(); ++event)
                found.emplace(event->first, &event->second);
        EventPage page;
        std::int64_t last = from->number;
        for (const auto& [number, event] : found | std::views::take(std::max<std::size_t>(limit, 1))) {
            page.events.push_back(*event);
            last = number;
        }
        page.is_last = page.events.size() == found.size();
        page.next = NumberedCursor{last}.text(cursor_form, store_id_);
        return page;
    }

    Result<EventCursor> end_of_events(Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        return NumberedCursor{events_written_}.text(cursor_form, store_id_);
    }

    Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) override {
        return hub_.subscribe(watch, std::move(fired));
    }

    StoreProperties properties() const override {
        return {.pushes = true, .commits_batches_as_one = true, .shows_only_durable = true};
    }

    std::optional<StoreId> store_id() const override { return store_id_; }

    StoreInfo info() const override {
        return {"memory:", store_id_, Grade::b, {"leases live and die with this process"}};
    }

    std::vector<Finding> examine(Deadline /*deadline*/) override {
        return {{"reachable", true, "this process's own memory"}};
    }

private:
    Result<std::vector<Reply>> run_steps(std::span<const Request> requests, Deadline deadline,
                                         std::vector<Change>& changes) {
        const std::scoped_lock lock(mutex_);
        if (deadline.passed(clock_))
            return fail(Errc::store_unavailable, "the time for this call is over; nothing was changed");
        const Instant now = clock_.wall();
        std::vector<Reply> replies;
        replies.reserve(requests.size());
        for (const Request& request : requests) {
            Decision decision = kernel::step(load(request, now), request, now);
            save(name_of(request), decision);
            // Not whether the first waiter can take the lock: the look at its watch finds that out.
            const std::optional<LockId> next = decision.handed_to ? decision.handed_to : first_of(request, now);
            changes.push_back({.name = name_of(request),
                               .record = std::move(decision.record),
                               .next = next,
                               .lost_lease = decision.lost_lease});
            replies.push_back(std::move(decision.reply));
        }
        return replies;
    }

    /// Under mutex_.
    [[nodiscard]] std::optional<LockId> first_of(const Request& request, Instant now) {
        for (const auto& [number, ticket] : entry_of(name_of(request)).tickets)
            if (ticket.expires_at > now) return ticket.lock_id;
        return std::nullopt;
    }

    /// Under mutex_.
    [[nodiscard]] LockStatus status(const LockName& name) const {
        const Instant now = clock_.wall();
        const auto found = locks_.find(name);
        if (found == locks_.end()) return kernel::status_of(kernel::blank(name), 0, now);
        return kernel::status_of(found->second.record, found->second.waiters(now), now);
    }

    kernel::State load(const Request& request, Instant now) {
        const Entry& entry = entry_of(name_of(request));
        kernel::State state{entry.record, {}, {}};
        state.queue.waiters = entry.waiters(now);
        const auto own = kernel::ticket_of(request);
        for (const auto& [number, ticket] : entry.tickets) {
            if (!state.queue.head && ticket.expires_at > now) state.queue.head = ticket;
            if (own && ticket.lock_id == *own) state.queue.own = ticket;
            state.queue.last_number = number;
        }
        for (const LockName& name : kernel::others_of(request)) state.others.push_back(entry_of(name).record);
        return state;
    }

    void save(const LockName& name, const Decision& decision) {
        Entry& entry = entry_of(name);
        if (decision.record) entry.record = *decision.record;
        for (const AuditEvent& event : decision.events) entry.events.emplace(++events_written_, event);
        std::erase_if(entry.events, [&](const auto& event) { return event.second.seq <= entry.record.pruned_seq; });
        const auto remove = [&](const LockId& lock_id) {
            std::erase_if(entry.tickets, [&](const auto& ticket) { return ticket.second.lock_id == lock_id; });
        };
        if (decision.drop_ticket) remove(*decision.drop_ticket);
        if (decision.put_ticket) {
            remove(decision.put_ticket->lock_id);
            entry.tickets.emplace(decision.put_ticket->number, *decision.put_ticket);
        }
    }

    Entry& entry_of(const LockName& name) { return locks_.try_emplace(name, name).first->second; }

    const Clock& clock_;
    const StoreId store_id_ = StoreId::random();

    mutable std::mutex mutex_;
    memory::Entries locks_;            ///< Guarded by mutex_.
    std::int64_t events_written_ = 0;  ///< Guarded by mutex_.

    WakeHub hub_{clock_, std::make_unique<memory::Source>(mutex_, locks_, clock_)};  ///< Last: it uses the others.
};

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): every store is opened by the same kind of function.
Result<std::unique_ptr<Store>> open_memory_store(base::Url url, const Clock& clock) {
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());
    if (!url.place.empty()) return fail(Errc::usage, "a memory store is written memory:, without a place");
    return std::make_unique<MemoryStore>(clock);
}

}  // namespace holdfast::stores
