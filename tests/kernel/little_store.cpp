#include "kernel/little_store.hpp"

#include <algorithm>

namespace holdfast::tests {

using kernel::Decision;
using kernel::State;
using kernel::Ticket;

LittleStore::Shelf& LittleStore::shelf(const LockName& name) {
    return shelves_.try_emplace(name, Shelf{kernel::blank(name)}).first->second;
}

std::uint64_t LittleStore::waiters(const LockName& name) {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(shelf(name).tickets, [&](const Ticket& ticket) { return ticket.expires_at > now_; }));
}

LockStatus LittleStore::status(const LockName& name) {
    return kernel::status_of(shelf(name).record, waiters(name), now_);
}

Decision LittleStore::decide(const Request& request) {
    Decision decision = kernel::step(load(request), request, now_);
    save(name_of(request), decision);
    return decision;
}

State LittleStore::load(const Request& request) {
    const LockName& name = name_of(request);
    State state{.record = shelf(name).record};
    const auto own = kernel::ticket_of(request);
    for (const Ticket& ticket : shelf(name).tickets) {
        if (!state.queue.head && ticket.expires_at > now_) state.queue.head = ticket;
        if (own && ticket.lock_id == *own) state.queue.own = ticket;
        state.queue.last_number = ticket.number;
    }
    state.queue.waiters = waiters(name);
    for (const LockName& other : kernel::others_of(request)) state.others.push_back(shelf(other).record);
    return state;
}

void LittleStore::save(const LockName& name, const Decision& decision) {
    Shelf& kept = shelf(name);
    if (decision.record) kept.record = *decision.record;
    kept.events.insert(kept.events.end(), decision.events.begin(), decision.events.end());
    std::erase_if(kept.events, [&](const AuditEvent& event) { return event.seq <= kept.record.pruned_seq; });
    const auto remove = [&](const LockId& id) {
        std::erase_if(kept.tickets, [&](const Ticket& ticket) { return ticket.lock_id == id; });
    };
    if (decision.drop_ticket) remove(*decision.drop_ticket);
    if (!decision.put_ticket) return;
    remove(decision.put_ticket->lock_id);
    kept.tickets.push_back(*decision.put_ticket);
    std::ranges::sort(kept.tickets, {}, &Ticket::number);
}

void KernelTest::expect_untouched(const Request& request, Errc code) {
    const LittleStore::Shelf before = store_.shelf(name_);
    const kernel::Decision decision = store_.decide(request);
    EXPECT_THAT(decision.reply, RefusedWith(code));
    EXPECT_FALSE(decision.record);
    EXPECT_TRUE(decision.events.empty());
    EXPECT_EQ(store_.shelf(name_).record, before.record);
    EXPECT_EQ(store_.shelf(name_).events, before.events);
}

}  // namespace holdfast::tests
