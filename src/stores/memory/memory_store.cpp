#include "stores/memory/memory_store.hpp"

#include "kernel/step.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <ranges>
#include <tuple>

namespace holdfast::stores {
namespace {

using kernel::Decision;
using kernel::Record;
using kernel::Ticket;

struct Entry {
    explicit Entry(const LockName& name) : record(kernel::blank(name)) {}
    Record record;
    std::map<std::uint64_t, Ticket> tickets;  ///< By number.
    std::vector<AuditEvent> events;
};

auto first_of(const Entry& entry, Instant now) {
    return std::ranges::find_if(entry.tickets, [&](const auto& ticket) { return ticket.second.expires_at > now; });
}

std::uint64_t waiters_of(const Entry& entry, Instant now) {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(entry.tickets, [&](const auto& ticket) { return ticket.second.expires_at > now; }));
}

class MemoryStore final : public Store {
public:
    explicit MemoryStore(const Clock& clock) : clock_(clock) {}

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        const std::scoped_lock lock(mutex_);
        if (deadline.passed(clock_))
            return fail(Errc::store_unavailable, "the time for this call is over; nothing was changed");
        const Instant now = clock_.wall();
        std::vector<Reply> replies;
        replies.reserve(requests.size());
        for (const Request& request : requests) {
            Decision decision = kernel::step(load(request, now), request, now);
            save(name_of(request), decision);
            if (decision.handed_to) ring(*decision.handed_to);
            ring_first(name_of(request), now);
            replies.push_back(std::move(decision.reply));
        }
        changed_.notify_all();
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
            if (entry.record.seq == 0 || !name.text().starts_with(query.prefix)) continue;
            if (!query.with_free && !entry.record.held) continue;
            if (query.changed_since && entry.record.changed_at < *query.changed_since) continue;
            if (name.text() <= query.after) continue;
            if (query.limit && found.size() >= *query.limit) break;
            found.push_back(kernel::status_of(entry.record, waiters_of(entry, now), now));
        }
        return found;
    }

    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline /*deadline*/) override {
        const std::scoped_lock lock(mutex_);
        std::vector<AuditEvent> found;
        for (const auto& [name, entry] : locks_) {
            if (query.name && *query.name != name) continue;
            for (const AuditEvent& event : entry.events)
                if ((!query.since || event.at >= *query.since) && (!query.name || event.seq > query.after_seq))
                    found.push_back(event);
        }
        if (!query.name)
            std::ranges::sort(found, {}, [](const AuditEvent& e) { return std::tie(e.at, e.name, e.seq); });
        if (query.limit && found.size() > *query.limit) {
            const auto surplus = static_cast<std::ptrdiff_t>(found.size() - *query.limit);
            const auto from = query.which == HistoryQuery::Which::newest ? found.begin() : found.end() - surplus;
            found.erase(from, from + surplus);
        }
        return found;
    }

    Result<std::optional<HandedOn>> wait_for_change(const Watch& watch, Deadline deadline) override {
        std::unique_lock lock(mutex_);
        std::condition_variable bell;
        if (watch.ticket) bells_[*watch.ticket] = &bell;
        std::condition_variable& news = watch.ticket ? bell : changed_;
        const auto may_go_on = [&] { return is_news(watch) || deadline.passed(clock_) || watch.stop.stop_requested(); };
        // In slices, because the injected clock may pass the deadline, and a lease run out, without anybody
        // being told.
        while (!may_go_on()) news.wait_for(lock, std::min(deadline.remaining(clock_), std::chrono::milliseconds{50}));
        if (!watch.ticket) return std::nullopt;
        bells_.erase(*watch.ticket);
        const Boottime seen_from = clock_.boottime();
        return HandedOn::to(*watch.ticket, status(watch.name), seen_from);
    }

    StoreInfo info() const override {
        return {"memory:", store_id_, Grade::b, {"leases live and die with this process"}};
    }

    std::vector<Finding> examine(Deadline /*deadline*/) override {
        return {{"reachable", true, "this process's own memory"}};
    }

private:
    /// Under mutex_.
    [[nodiscard]] LockStatus status(const LockName& name) const {
        const Instant now = clock_.wall();
        const auto found = locks_.find(name);
        if (found == locks_.end()) return kernel::status_of(kernel::blank(name), 0, now);
        return kernel::status_of(found->second.record, waiters_of(found->second, now), now);
    }

    /// Whether who waits should look. Under mutex_.
    [[nodiscard]] bool is_news(const Watch& watch) const {
        const auto found = locks_.find(watch.name);
        if (!watch.ticket) return (found == locks_.end() ? 0 : found->second.record.seq) != watch.seen_seq;
        if (found == locks_.end()) return true;
        const Entry& entry = found->second;
        const Instant now = clock_.wall();
        const auto own = std::ranges::find(entry.tickets | std::views::values, *watch.ticket, &Ticket::lock_id);
        if (own.base() == entry.tickets.end() || (*own).expires_at <= now) return true;
        return first_of(entry, now) == own.base() && !(entry.record.held && entry.record.held->lease.expires_at > now);
    }

    /// Only the first in line could do anything with the news. Under mutex_.
    void ring_first(const LockName& name, Instant now) {
        const Entry& entry = entry_of(name);
        const auto first = first_of(entry, now);
        if (first != entry.tickets.end()) ring(first->second.lock_id);
    }

    /// Under mutex_.
    void ring(const LockId& waiter) {
        const auto bell = bells_.find(waiter);
        if (bell != bells_.end()) bell->second->notify_one();
    }

    kernel::State load(const Request& request, Instant now) {
        const Entry& entry = entry_of(name_of(request));
        kernel::State state{entry.record, {}, {}};
        state.queue.waiters = waiters_of(entry, now);
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
        entry.events.insert(entry.events.end(), decision.events.begin(), decision.events.end());
        std::erase_if(entry.events, [&](const AuditEvent& event) { return event.seq <= entry.record.pruned_seq; });
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
    std::condition_variable changed_;                   ///< For those who wait without a ticket.
    std::map<LockId, std::condition_variable*> bells_;  ///< Of those who wait with one. Guarded by mutex_.
    std::map<LockName, Entry> locks_;                   ///< Guarded by mutex_.
};

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): every store is opened by the same kind of function.
Result<std::unique_ptr<Store>> open_memory_store(base::Url url, const Clock& clock) {
    if (auto none = url.expect_no_parameters(); !none) return std::unexpected(none.error());
    if (!url.place.empty()) return fail(Errc::usage, "a memory store is written memory:, without a place");
    return std::make_unique<MemoryStore>(clock);
}

}  // namespace holdfast::stores
