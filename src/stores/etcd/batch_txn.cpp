#include "stores/etcd/batch_txn.hpp"

#include "stores/common/sealed.hpp"

#include <algorithm>

namespace holdfast::stores::etcd {
namespace {

std::string text_of(const base::Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

bool is_dead(const kernel::Ticket& ticket, const Moment& moment) { return ticket.expires_at <= moment.now; }

}  // namespace

BatchTxn::BatchTxn(const Keys& keys, const BatchView& view, const std::vector<Change>& changes, const Moment& moment,
                   bool was_used)
    : keys_(keys),
      marks_used_(!was_used && std::ranges::any_of(changes, [](const Change& c) { return c.is_new && c.record; })) {
    txn_.if_unchanged(keys_.meta(), view.meta() ? view.meta()->changed_in : 0);
    // Also the records that were only read: a lock that excludes this one may have been taken meanwhile.
    for (const Wanted& lock : view.wanted())
        txn_.if_unchanged(keys_.record(lock.name), view.record_changed_in(lock.name));
    if (view.is_assumed()) compare_predictions(view);
    for (const Change& change : changes) {
        write(change, moment);
        for (const kernel::Ticket& ticket : change.put) put(view, change.name, ticket, moment);
        for (const kernel::Ticket& ticket : change.dropped)
            if (!is_dead(ticket, moment)) drop(view, change, ticket);
    }
    // Not compared: all clients write the same.
    if (marks_used_) txn_.put(keys_.used(), "1");
    sweep(view, changes, moment);
    if (view.is_assumed()) view.plan_queues([&](const Get& get) { txn_.get(get); });
    // A new waiter needs to know the tickets before its own.
    reads_queue_ = !view.is_assumed() && view.wanted().size() == 1 && changes.size() == 1 && !changes[0].put.empty();
    if (reads_queue_) txn_.get(view.queue_of(view.wanted().front()));
    // A prediction is hardly ever wrong, so the failure branch does not read the state as well.
    reads_otherwise_ = !view.is_assumed();
    if (reads_otherwise_) view.plan([&](const Get& get) { txn_.otherwise_get(get); });
    if (!evidence_.key.empty()) txn_.otherwise_get(evidence_get_);
}

void BatchTxn::compare_predictions(const BatchView& view) {
    for (const Wanted& lock : view.wanted()) {
        if (const auto absent = view.assumed_absent(lock)) txn_.if_absent(*absent);
        // A lock that lost its record is damaged, not new.
        if (view.is_new(lock.name)) txn_.if_absent(keys_.events(lock.name));
    }
}

void BatchTxn::write(const Change& change, const Moment& moment) {
    if (change.record) {
        std::string& record = records_[change.name] = text_of(sealed(*change.record, moment.now));
        txn_.put(keys_.record(change.name), record);
    }
    for (const AuditEvent& event : change.events) {
        std::string value = text_of(sealed(event));
        txn_.put(keys_.event(change.name, event.seq), value);
        // An event never changes and belongs to one request, so it is the best evidence, but it may be pruned. The
        // lock's newest event never is, so the first event from this number on is this event, or shows that it was
        // pruned.
        evidence_ = {keys_.event(change.name, event.seq), std::move(value)};
        evidence_get_ = {.keys = keys_.events(change.name, event.seq - 1), .limit = 1};
    }
    if (change.clears_queue) {
        txn_.remove_all(keys_.tickets(change.name));
        txn_.remove_all(keys_.ticket_indexes(change.name));
    }
    // Never an event that is written here: etcd refuses a transaction that changes a key twice.
    if (change.cut) txn_.remove_all(keys_.events_through(change.name, change.cut->after, change.cut->through));
}

void BatchTxn::put(const BatchView& view, const LockName& name, const kernel::Ticket& ticket, const Moment& moment) {
    const std::string key = keys_.ticket(name, ticket.number);
    std::string value = text_of(sealed(ticket, moment.now));
    txn_.if_unchanged(key, view.ticket_changed_in(name, ticket.number));
    txn_.put(key, value);
    if (evidence_.key.empty()) {
        evidence_ = {key, std::move(value)};
        evidence_get_ = {.keys = {key}};
    }
    const auto before = view.place_of(name, ticket.lock_id);
    if (before == ticket.number) return;
    txn_.put(keys_.ticket_index(name, ticket.lock_id), digits_of(ticket.number));
    // A waiter whose ticket had expired gets a place at the end, and the old one is removed.
    if (before) txn_.remove(keys_.ticket(name, *before));
}

void BatchTxn::sweep(const BatchView& view, const std::vector<Change>& changes, const Moment& moment) {
    // As far as there is room: expired tickets block nobody.
    constexpr std::size_t room = Txn::most_operations / 2;
    for (const Change& change : changes)
        for (const kernel::Ticket& ticket : change.dropped)
            if (is_dead(ticket, moment) && txn_.operations() + 2 <= room) drop(view, change, ticket);
}

void BatchTxn::drop(const BatchView& view, const Change& change, const kernel::Ticket& ticket) {
    const bool comes_back = std::ranges::find(change.put, ticket.lock_id, &kernel::Ticket::lock_id) != change.put.end();
    if (comes_back) return;
    // Its owner may have extended it meanwhile.
    txn_.if_unchanged(keys_.ticket(change.name, ticket.number), view.ticket_changed_in(change.name, ticket.number));
    txn_.remove(keys_.ticket(change.name, ticket.number));
    txn_.remove(keys_.ticket_index(change.name, ticket.lock_id));
}

BatchTxn::Earlier BatchTxn::earlier_copy(const BatchView& view, const TxnAnswer& answer) const {
    const std::size_t at = reads_otherwise_ ? view.planned() : 0;
    if (evidence_.key.empty() || answer.found.size() <= at || answer.found[at].keys.empty()) return Earlier::not_done;
    const KeyValue& found = answer.found[at].keys.front();
    if (found.key != evidence_.key) return Earlier::unknown;
    return found.value == evidence_.value ? Earlier::done : Earlier::not_done;
}

}  // namespace holdfast::stores::etcd
