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
    std::vector<LockId> dead;  ///< Tickets that have run out.
    bool of_earlier_boot = false;
};

Result<Loaded> load(Tables& tables, const Request& request, const Moment& moment) {
    auto found = tables.record(name_of(request), moment);
    if (!found) return std::unexpected(found.error());
    auto view = tables.queue(name_of(request), kernel::ticket_of(request), moment);
    if (!view) return std::unexpected(view.error());
    Loaded loaded{
        {std::move(found->record), std::move(view->queue), {}}, std::move(view->dead), found->of_earlier_boot};
    for (const LockName& name : kernel::others_of(request)) {
        auto other = tables.record(name, moment);
        if (!other) return std::unexpected(other.error());
        loaded.state.others.push_back(std::move(other->record));
    }
    return loaded;
}

Result<void> save_queue(Tables& tables, const Loaded& loaded, const Decision& decision, const Moment& moment,
                        Effects& effects) {
    const kernel::Record& before = loaded.state.record;
    effects.changed = true;
    std::vector<LockId> dropped = loaded.dead;
    if (decision.drop_ticket) dropped.push_back(*decision.drop_ticket);
    for (const LockId& ticket : dropped)
        if (auto gone = tables.drop_ticket(before.name, ticket); !gone) return gone;
    if (decision.put_ticket) {
        if (auto put = tables.put_ticket(before.name, *decision.put_ticket, moment); !put) return put;
    }
    effects.gone.insert(effects.gone.end(), dropped.begin(), dropped.end());
    if (decision.handed_to) effects.next.push_back(*decision.handed_to);
    const auto& held = decision.record ? decision.record->held : before.held;
    const bool is_open = !held || held->lease.expires_at <= moment.now;
    const bool is_news = decision.record || !dropped.empty();
    if (is_news && is_open && loaded.state.queue.waiters > 0) effects.opened.push_back(before.name);
    return {};
}

/// After an error the transaction holds half a step, and must not be committed.
Result<void> save(Tables& tables, const Loaded& loaded, const Decision& decision, const Moment& moment,
                  Effects& effects) {
    const kernel::Record& before = loaded.state.record;
    // The first to come after a reboot pins down what is left of the lease. Otherwise a wall clock that
    // lost the date would grant it one more ttl at every look.
    const bool pins = loaded.of_earlier_boot && before.held && !decision.record;
    if (decision.record || pins) {
        effects.changed = effects.changed_lock = true;
        effects.made_lock = effects.made_lock || before.seq == 0;
        const auto put = tables.put_record(decision.record ? *decision.record : before, before.seq == 0, moment);
        if (!put) return put;
    }
    for (const AuditEvent& event : decision.events) {
        effects.changed_lock = true;
        if (auto added = tables.add_event(event); !added) return added;
    }
    if (decision.record && decision.record->pruned_seq != before.pruned_seq) {
        const auto pruned = tables.prune(before.name, before.pruned_seq, decision.record->pruned_seq);
        if (!pruned) return pruned;
    }
    if (!decision.record && !decision.put_ticket && !decision.drop_ticket) return {};
    return save_queue(tables, loaded, decision, moment, effects);
}

/// Who is to be woken. Only the first in line could do anything with the news.
Result<void> find_next(Tables& tables, const Moment& moment, Effects& effects) {
    for (const LockName& name : effects.opened) {
        const auto first = tables.first_in_line(name, moment);
        if (!first) return std::unexpected(first.error());
        if (*first) effects.next.push_back(**first);
    }
    return {};
}

}  // namespace

Result<std::vector<Reply>> run_steps(Session& session, std::span<const Request> requests, const Clock& clock,
                                     Effects& effects) {
    auto transaction = Transaction::immediate(session.database());
    if (!transaction) return std::unexpected(transaction.error());
    // Read after the lock was taken: time that passed while waiting for it counts.
    const Moment moment = Moment::of(clock);
    std::vector<Reply> replies;
    replies.reserve(requests.size());
    for (const Request& request : requests) {
        const auto loaded = load(session.tables(), request, moment);
        // A row that cannot be read blocks its own lock. Damage that SQLite itself finds blocks them all.
        if (!loaded && loaded.error().code == Errc::record_corrupt && !session.database().damaged()) {
            replies.emplace_back(std::unexpected(loaded.error()));
            continue;
        }
        if (!loaded) return std::unexpected(loaded.error());
        Decision decision = kernel::step(loaded->state, request, moment.now);
        if (auto saved = save(session.tables(), *loaded, decision, moment, effects); !saved)
            return std::unexpected(saved.error());
        replies.push_back(std::move(decision.reply));
    }
    if (!effects.changed) return replies;
    if (auto found = find_next(session.tables(), moment, effects); !found) return std::unexpected(found.error());
    const bool marks = effects.made_lock && !session.was_used();
    if (marks)
        if (auto marked = mark_used(session.database(), session.store_id(), moment.now); !marked)
            return std::unexpected(marked.error());
    // Those who wait do not outlive a power cut, so their places need not. A later commit takes them along.
    std::optional<UnsyncedCommits> only_places;
    if (!effects.changed_lock) only_places.emplace(session.database().handle());
    std::optional<FramesAtOnce> at_once;
    if (session.is_synced()) at_once.emplace(session.database().handle(), session.memory_for_frames());
    if (auto done = transaction->commit(); !done) return std::unexpected(done.error());
    // SQLite has always synced by now, and then they are in the log.
    if (!session.memory_for_frames().empty())
        return fail(Errc::outcome_unknown, "SQLite did not sync its log, so the change may not be in it");
    if (marks) session.now_used();
    return replies;
}

}  // namespace holdfast::stores::sqlite
