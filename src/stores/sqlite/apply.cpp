#include "stores/sqlite/apply.hpp"

#include "kernel/step.hpp"
#include "stores/sqlite/log_file.hpp"

#include <optional>
#include <utility>

namespace holdfast::stores::sqlite {
namespace {

using kernel::Decision;

/// What a step reads.
struct Loaded {
    kernel::State state;
    std::vector<LockId> dead{};  ///< Tickets that have run out.
    bool of_earlier_boot = false;
    bool has_row = false;  ///< The lock has a record, readable or not.
};

Result<Loaded> load(Tables& tables, const Bonds& bonds, const Request& request, const Moment& moment) {
    auto found = tables.record(name_of(request), moment);
    if (!found) return std::unexpected(found.error());
    auto view = tables.queue(name_of(request), kernel::ticket_of(request), moment);
    if (!view) return std::unexpected(view.error());
    const bool has_row = found->record.seq > 0;
    Loaded loaded{
        {std::move(found->record), std::move(view->queue), {}}, std::move(view->dead), found->of_earlier_boot, has_row};
    bonds.end_abandoned(request, moment.now, loaded.state.record);
    for (const LockName& name : kernel::others_of(request)) {
        auto other = tables.record(name, moment);
        if (!other) return std::unexpected(other.error());
        loaded.state.others.push_back(std::move(other->record));
    }
    return loaded;
}

/// A lock that cannot be read, for the request that repairs it.
Result<Loaded> load_damage(Tables& tables, const LockName& name, const Moment& moment) {
    auto damage = tables.damage(name, moment);
    if (!damage) return std::unexpected(damage.error());
    return Loaded{.state = {kernel::blank(name), {}, {}, std::move(damage->damage)}, .has_row = damage->has_row};
}

Result<void> save_queue(Tables& tables, Bonds& bonds, const Loaded& loaded, const Decision& decision,
                        const Moment& moment, Effects& effects) {
    const kernel::Record& before = loaded.state.record;
    effects.changed = true;
    std::vector<LockId> dropped = loaded.dead;
    if (decision.drop_ticket) dropped.push_back(*decision.drop_ticket);
    for (const LockId& ticket : dropped)
        if (auto gone = tables.drop_ticket(before.name, ticket); !gone) return gone;
    effects.gone.insert(effects.gone.end(), dropped.begin(), dropped.end());
    if (decision.put_ticket) {
        const LockId& ticket = decision.put_ticket->lock_id;
        bonds.bind_ticket(ticket);
        if (auto put = tables.put_ticket(before.name, *decision.put_ticket, moment); !put) return put;
        std::erase(effects.gone, ticket);
    }
    if (decision.handed_to) effects.next.push_back(*decision.handed_to);
    if (decision.lost_lease) {
        effects.next.push_back(*decision.lost_lease);
        effects.gone.push_back(*decision.lost_lease);
    }
    const auto& held = decision.record ? decision.record->held : before.held;
    const bool is_open = !held || held->lease.expires_at <= moment.now;
    const bool is_news = decision.record || !dropped.empty();
    if (is_news && is_open && loaded.state.queue.waiters > 0) effects.opened.push_back(before.name);
    return {};
}

/// After an error the transaction holds half a step, and must not be committed.
Result<void> save(Tables& tables, Bonds& bonds, const Loaded& loaded, const Decision& decision, const Moment& moment,
                  Effects& effects) {
    const kernel::Record& before = loaded.state.record;
    // The first change after a reboot saves how much of the lease is left. Otherwise a wall clock that lost the date
    // would grant it one more ttl at every look.
    const bool pins = loaded.of_earlier_boot && before.held && !decision.record;
    if (decision.record || pins) {
        effects.changed = effects.changed_lock = true;
        effects.made_lock = effects.made_lock || before.seq == 0;
        const auto put = tables.put_record(decision.record ? *decision.record : before, !loaded.has_row, moment);
        if (!put) return put;
    }
    if (decision.record)
        if (const auto ended = Bonds::ended_between(before, *decision.record)) effects.ended.push_back(*ended);
    for (const AuditEvent& event : decision.events) {
        effects.changed_lock = true;
        if (auto added = tables.add_event(event); !added) return added;
    }
    if (decision.clears_queue) {
        auto gone = tables.clear_queue(before.name);
        if (!gone) return std::unexpected(gone.error());
        effects.gone.insert(effects.gone.end(), gone->begin(), gone->end());
        return {};
    }
    if (decision.record && decision.record->pruned_seq != before.pruned_seq) {
        const auto pruned = tables.prune(before.name, before.pruned_seq, decision.record->pruned_seq);
        if (!pruned) return pruned;
    }
    if (!decision.record && !decision.put_ticket && !decision.drop_ticket) return {};
    return save_queue(tables, bonds, loaded, decision, moment, effects);
}

/// Collects the waiters to wake: only the first in each queue can take its lock.
Result<void> find_next(Tables& tables, const Moment& moment, Effects& effects) {
    for (const LockName& name : effects.opened) {
        const auto first = tables.first_in_line(name, moment);
        if (!first) return std::unexpected(first.error());
        if (*first) effects.next.push_back(**first);
    }
    return {};
}

}  // namespace

Result<std::vector<Reply>> run_steps(CheckedStore& store, Bonds& bonds, std::span<const Request> requests,
                                     const Clock& clock, Effects& effects) {
    auto transaction = Transaction::immediate(store.database());
    if (!transaction) return std::unexpected(transaction.error());
    // Read after the lock was taken: time that passed while waiting for it counts.
    const Moment moment = Moment::of(clock);
    std::vector<Reply> replies;
    replies.reserve(requests.size());
    for (const Request& request : requests) {
        auto loaded = load(store.tables(), bonds, request, moment);
        const bool repairs = std::holds_alternative<Repair>(request);
        if (!loaded && repairs && loaded.error().code == Errc::record_corrupt && !store.database().damaged())
            loaded = load_damage(store.tables(), name_of(request), moment);
        // A row that cannot be read blocks its own lock. Damage that SQLite itself finds blocks all locks.
        if (!loaded && loaded.error().code == Errc::record_corrupt && !store.database().damaged()) {
            replies.emplace_back(std::unexpected(loaded.error()));
            continue;
        }
        if (!loaded) return std::unexpected(loaded.error());
        Decision decision = kernel::step(loaded->state, request, moment.now);
        if (auto bound = bonds.bind_session(request, decision); !bound) {
            replies.emplace_back(std::unexpected(bound.error()));
            continue;
        }
        if (auto saved = save(store.tables(), bonds, *loaded, decision, moment, effects); !saved)
            return std::unexpected(saved.error());
        replies.push_back(std::move(decision.reply));
    }
    if (!effects.changed) return replies;
    if (auto found = find_next(store.tables(), moment, effects); !found) return std::unexpected(found.error());
    const bool marks = effects.made_lock && !store.was_used();
    if (marks)
        if (auto marked = mark_used(store.database(), store.store_id(), moment.now); !marked)
            return std::unexpected(marked.error());
    // No waiter outlives a power cut, so a place in a queue needs no sync of its own. The next synced commit includes
    // it.
    std::optional<UnsyncedCommits> only_places;
    if (!effects.changed_lock) only_places.emplace(store.database().handle());
    std::optional<FramesAtOnce> at_once;
    if (store.is_synced()) at_once.emplace(store.database().handle(), store.memory_for_frames());
    if (auto done = transaction->commit(); !done) return std::unexpected(done.error());
    // SQLite has synced by now, so the frames are in the log.
    if (!store.memory_for_frames().empty())
        return fail(Errc::outcome_unknown, "SQLite did not sync its log, so the change may not be in it");
    if (marks) store.now_used();
    return replies;
}

}  // namespace holdfast::stores::sqlite
