#include "stores/common/batch.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::stores {

using kernel::Decision;
using kernel::Record;
using kernel::Ticket;
using std::chrono::milliseconds;

/// One lock while the batch runs: as it was read, with what the requests so far have made of it.
struct Batch::Lock {
    Result<LockView> view = fail(Errc::store_unavailable, "the lock was not read");
    std::optional<kernel::Damage> damage{};
    std::map<std::uint64_t, Ticket> tickets{};  ///< Those that are known, by number.
    Change change;

    [[nodiscard]] const Ticket* find(const LockId& lock_id) const {
        const auto found =
            std::ranges::find_if(tickets, [&](const auto& ticket) { return ticket.second.lock_id == lock_id; });
        return found == tickets.end() ? nullptr : &found->second;
    }

    [[nodiscard]] const Ticket* head(Instant now) const {
        const auto found = std::ranges::find_if(tickets, [&](const auto& t) { return t.second.expires_at > now; });
        return found == tickets.end() ? nullptr : &found->second;
    }

    void drop(const LockId& lock_id, Instant now) {
        const Ticket* found = find(lock_id);
        if (found == nullptr) return;
        if (found->expires_at > now) --view->waiters;
        std::erase_if(change.put, [&](const Ticket& ticket) { return ticket.lock_id == lock_id; });
        change.dropped.push_back(*found);
        tickets.erase(found->number);
    }

    void put(const Ticket& ticket, Instant now) {
        if (const Ticket* before = find(ticket.lock_id)) {
            if (before->expires_at > now) --view->waiters;
            tickets.erase(before->number);
        }
        std::erase_if(change.put, [&](const Ticket& other) { return other.lock_id == ticket.lock_id; });
        std::erase_if(change.dropped, [&](const Ticket& other) { return other.number == ticket.number; });
        change.put.push_back(ticket);
        tickets.insert_or_assign(ticket.number, ticket);
        view->last_number = std::max(view->last_number, ticket.number);
        if (ticket.expires_at > now) ++view->waiters;
    }

    /// Events up to `through` go. Those that the batch itself has made are not even written.
    void cut(std::uint64_t through) {
        if (through == view->record.pruned_seq) return;
        if (!change.cut) change.cut = Cut{.after = view->record.pruned_seq};
        change.cut->through = through;
        std::erase_if(change.events, [&](const AuditEvent& event) { return event.seq <= through; });
    }

    /// Tickets that have expired. They block nobody, and the next write removes them.
    void sweep(Instant now) {
        std::vector<LockId> dead;
        for (const auto& [number, ticket] : tickets)
            if (ticket.expires_at <= now) dead.push_back(ticket.lock_id);
        for (const LockId& lock_id : dead) drop(lock_id, now);
    }

    /// Deadlines that were moved as it was read, and not written since, are to be written now.
    void keep_moved() {
        if (view->moved && view->record.held) change.record = view->record;
        for (const LockId& lock_id : view->moved_tickets) {
            const Ticket* ticket = find(lock_id);
            if (ticket != nullptr && std::ranges::find(change.put, lock_id, &Ticket::lock_id) == change.put.end())
                change.put.push_back(*ticket);
        }
    }

    [[nodiscard]] bool is_open(Instant now) const {
        return !view->record.held || view->record.held->lease.expires_at <= now;
    }
};

namespace {

/// A record that is missing is written anew by a Repair.
bool may_create(const Request& request) {
    return std::holds_alternative<Acquire>(request) || std::holds_alternative<Repair>(request);
}
bool may_change(const Request& request) { return !std::holds_alternative<Check>(request); }
bool may_take_over(const Request& request) {
    return std::holds_alternative<Acquire>(request) || std::holds_alternative<Expire>(request);
}

Wanted& want(std::map<LockName, Wanted>& wanted, const LockName& name) {
    return wanted.try_emplace(name, Wanted{.name = name}).first->second;
}

/// The moment by which `request` is judged, if nobody may take over a lease within `margin` of its end.
Instant judged_at(const Record& record, const Request& request, Instant now, milliseconds margin) {
    if (margin == milliseconds{0} || !record.held || !takes_over(request, record.held->lease)) return now;
    const Lease& lease = record.held->lease;
    const bool just_expired = lease.expires_at <= now && now < lease.expires_at + margin;
    return just_expired ? lease.expires_at - milliseconds{1} : now;
}

}  // namespace

bool takes_over(const Request& request, const Lease& lease) {
    if (const auto* acquire = std::get_if<Acquire>(&request)) return acquire->as.lock_id != lease.lock_id;
    return std::holds_alternative<Expire>(request);
}

Batch::Batch(std::span<const Request> requests, Claims claims) : requests_(requests), claims_(claims) {
    std::map<LockName, Wanted> wanted;
    for (const Request& request : requests) {
        Wanted& lock = want(wanted, name_of(request));
        lock.may_create = lock.may_create || may_create(request);
        lock.may_change = lock.may_change || may_change(request);
        lock.may_take_over = lock.may_take_over || may_take_over(request);
        lock.repairs = lock.repairs || std::holds_alternative<Repair>(request);
        ++lock.requests;
        // Each request can remove the ticket at the head, and the next one needs the ticket that follows.
        lock.depth = lock.requests + 1;
        if (const auto own = kernel::ticket_of(request)) lock.own_tickets.push_back(*own);
        for (const LockName& name : kernel::others_of(request)) {
            Wanted& other = want(wanted, name);
            other.excludes = other.excludes || std::holds_alternative<Acquire>(request);
        }
    }
    wanted_.reserve(wanted.size());
    for (auto& [name, lock] : wanted) {
        locks_.try_emplace(name, Lock{.change = {.name = name}});
        wanted_.push_back(std::move(lock));
    }
}

Batch::~Batch() = default;

void Batch::found(const LockName& name, Result<LockView> view) {
    Lock& lock = locks_.at(name);
    lock.view = std::move(view);
    lock.damage.reset();
    lock.tickets.clear();
    lock.change = {.name = name};
    if (!lock.view) return;
    lock.change.is_new = lock.view->record.seq == 0;
    for (Ticket& ticket : lock.view->tickets) lock.tickets.emplace(ticket.number, std::move(ticket));
}

void Batch::found_damaged(const LockName& name, Error why, kernel::Damage damage) {
    found(name, std::unexpected(std::move(why)));
    locks_.at(name).damage = std::move(damage);
}

std::vector<Reply> Batch::run(Instant now, milliseconds margin) {
    std::vector<Reply> replies;
    replies.reserve(requests_.size());
    for (const Request& request : requests_) replies.push_back(decide(request, now, margin));

    changes_.clear();
    for (const Wanted& wanted : wanted_) {
        Lock& lock = locks_.at(wanted.name);
        if (!lock.view) continue;
        if (wanted.may_change) lock.keep_moved();
        if (lock.change.empty()) continue;
        const bool is_news = lock.change.record || !lock.change.dropped.empty();
        lock.sweep(now);
        const Ticket* head = lock.head(now);
        if (is_news && head != nullptr && lock.is_open(now)) lock.change.next = head->lock_id;
        changes_.push_back(std::move(lock.change));
    }
    return replies;
}

Reply Batch::decide(const Request& request, Instant now, milliseconds margin) {
    Lock& lock = locks_.at(name_of(request));
    if (!lock.view && lock.damage && std::holds_alternative<Repair>(request)) return repair(request, lock, now);
    if (!lock.view) return std::unexpected(lock.view.error());
    for (const LockName& name : kernel::others_of(request))
        if (const Lock& other = locks_.at(name); !other.view) return std::unexpected(other.view.error());

    const Instant at = judged_at(lock.view->record, request, now, margin);
    Decision decision = kernel::step(state_of(request, lock, at), request, at);
    std::ranges::move(decision.events, std::back_inserter(lock.change.events));
    if (decision.record) {
        lock.cut(decision.record->pruned_seq);
        lock.view->record = *decision.record;
        lock.change.record = std::move(decision.record);
    }
    if (decision.drop_ticket) lock.drop(*decision.drop_ticket, now);
    if (decision.handed_to) lock.change.next = decision.handed_to;
    // The first: nobody outside has heard of those that came after it.
    if (!lock.change.lost_lease) lock.change.lost_lease = decision.lost_lease;
    if (decision.put_ticket) {
        // Judged as of an earlier moment, the ticket would expire before its time, and its owner would be last in the
        // queue again.
        decision.put_ticket->expires_at += now - at;
        if (claims_ == Claims::dropped) decision.put_ticket->claim.reset();
        lock.put(*decision.put_ticket, now);
    }
    return std::move(decision.reply);
}

Reply Batch::repair(const Request& request, Lock& lock, Instant now) {
    kernel::State state{kernel::blank(name_of(request)), {}, {}, std::move(lock.damage)};
    lock.damage.reset();
    Decision decision = kernel::step(state, request, now);
    if (!decision.record) return std::move(decision.reply);
    lock.view = LockView{.record = *decision.record};
    lock.change.is_new = !state.damage->record;
    lock.change.record = std::move(decision.record);
    lock.change.events = std::move(decision.events);
    lock.change.clears_queue = true;
    return std::move(decision.reply);
}

kernel::State Batch::state_of(const Request& request, const Lock& lock, Instant now) const {
    kernel::State state{lock.view->record, {}, {}};
    state.queue.waiters = lock.view->waiters;
    state.queue.last_number = lock.view->last_number;
    if (const Ticket* head = lock.head(now)) state.queue.head = *head;
    if (const auto own = kernel::ticket_of(request)) {
        if (const Ticket* ticket = lock.find(*own)) state.queue.own = *ticket;
    }
    for (const LockName& name : kernel::others_of(request)) state.others.push_back(locks_.at(name).view->record);
    return state;
}

const kernel::Ticket* head_of(const LockView& view, Instant now) {
    const auto first = std::ranges::min_element(view.tickets, {}, [&](const kernel::Ticket& ticket) {
        return std::pair(ticket.expires_at <= now, ticket.number);
    });
    return first == view.tickets.end() ? nullptr : &*first;
}

}  // namespace holdfast::stores
