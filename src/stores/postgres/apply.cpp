#include "stores/postgres/apply.hpp"

#include "base/jitter.hpp"
#include "kernel/step.hpp"
#include "stores/common/sealed.hpp"
#include "stores/postgres/codec.hpp"
#include "stores/postgres/optimistic.hpp"
#include "stores/postgres/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace holdfast::stores::postgres {
namespace {

using Kind = AttemptError::Kind;

/// Two who use a lock for the first time meet at the row that one of them inserts, which no statement can pass over. A
/// batch that others share waits there for as long as it takes to commit, and not for somebody who is stuck.
constexpr std::chrono::milliseconds longest_shared_wait{50};

enum class Hold { none, share, change };

/// How the lock's row is to be held. What excludes an Acquire must not change until it is committed, so it is held,
/// too, but many may do that at once. Who only checks holds nothing: his answer is old as soon as he has it.
Hold hold_of(const Wanted& lock) {
    if (lock.may_change) return Hold::change;
    return lock.excludes ? Hold::share : Hold::none;
}

/// Rows for locks that may have none, then all row locks in byte order of the names, so that batches queue up behind
/// each other instead of blocking each other. Neighbours that are held the same way share a statement.
///
/// The number of statements that lock, which are the last ones.
std::size_t add_locking(std::vector<Statement>& trip, const Context& context, const std::vector<Wanted>& wanted) {
    const Statements& statements = context.statements;
    const bool waits = context.busy == Busy::wait;
    Array missing(Type::bytes);
    bool any = false;
    for (const Wanted& lock : wanted) {
        // Two that exclude each other and are both new would not see each other without a row to meet at.
        if (!lock.may_create && !lock.excludes) continue;
        missing.add(lock.name.text());
        any = true;
    }
    if (any) trip.push_back(Statement(statements.place).bind(missing));
    const std::size_t before = trip.size();
    for (std::size_t i = 0; i < wanted.size();) {
        const Hold hold = hold_of(wanted[i]);
        Array names(Type::bytes);
        for (; i < wanted.size() && hold_of(wanted[i]) == hold; ++i) names.add(wanted[i].name.text());
        if (hold == Hold::none) continue;
        const RepeatedText& to_change = waits ? statements.lock_to_change : statements.lock_to_change_if_free;
        const RepeatedText& to_look = waits ? statements.lock_to_look : statements.lock_to_look_if_free;
        trip.push_back(Statement(hold == Hold::change ? to_change : to_look).bind(names));
    }
    return trip.size() - before;
}

/// Locks whose rows are there and should be held, but are not: somebody else has them, or they came just now.
std::vector<LockName> not_held(const std::vector<Wanted>& wanted, const View& view, std::span<const Rows> locked) {
    std::set<std::string_view> held;
    for (const Rows& rows : locked)
        for (int row = 0; row < rows.count(); ++row) held.insert(rows.text(row, 0));
    std::vector<LockName> missed;
    for (const Wanted& lock : wanted)
        if (hold_of(lock) != Hold::none && view.present.contains(lock.name) && !held.contains(lock.name.text()))
            missed.push_back(lock.name);
    return missed;
}

std::set<LockName> names_asked_for(std::span<const Request> requests) {
    std::set<LockName> names;
    for (const Request& request : requests)
        if (std::holds_alternative<Acquire>(request)) names.insert(name_of(request));
    return names;
}

/// The lock_id that a request proves to own, if it proves one.
std::optional<LockId> owner_of(const Request& request) {
    return std::visit(
        [](const auto& one) -> std::optional<LockId> {
            if constexpr (requires { one.as.lock_id; }) return one.as.lock_id;
            return std::nullopt;
        },
        request);
}

/// A lease whose holder's session is gone counts as run out, for whoever asks for the lock. Not for the holder itself,
/// which may have lost no more than a connection.
void end_orphans(View& view, const Context& context, std::span<const Request> requests) {
    for (const LockName& name : view.bound) {
        Result<LockView>& lock = view.locks.at(name);
        if (!lock || !lock->record.held) continue;
        Lease& lease = lock->record.held->lease;
        const bool ours = context.keeper != nullptr && context.keeper->replaces(name, lease.lock_id);
        const bool holder_asks = std::ranges::any_of(requests, [&](const Request& request) {
            return name_of(request) == name && owner_of(request) == lease.lock_id;
        });
        if (!holder_asks && (ours || view.orphaned.contains(name)))
            lease.expires_at = std::min(lease.expires_at, view.now);
    }
}

ApplyError final_error(Error error) { return {{Kind::final, std::move(error)}}; }

/// A fault before COMMIT was sent: the server has undone everything, or will.
ApplyError apply_error_of(const Fault& fault, Busy busy) {
    Error error = error_of(fault, "use the locks");
    // Two who joined a queue at once chose the same number.
    const bool met_in_queue = fault.sqlstate == "23505" && fault.constraint == "queue_pkey";
    if (fault.sqlstate == "40001" || fault.sqlstate == "40P01" || met_in_queue || fault.is_strangers())
        return {{Kind::conflict, std::move(error)}};
    if (fault.silent() || fault.fatal) return {{Kind::connection_lost, std::move(error)}};
    const bool timed_out = fault.sqlstate == "55P03";
    return {{timed_out && busy == Busy::report ? Kind::locks_busy : Kind::final, std::move(error)}};
}

ApplyError rows_are_locked(std::vector<LockName> locks, Busy busy) {
    return {{busy == Busy::report ? Kind::locks_busy : Kind::conflict,
             {Errc::store_unavailable, "somebody else holds the row of a lock; nothing was changed"},
             std::move(locks)}};
}

std::unexpected<ApplyError> give_up(Connection& connection, ApplyError error) {
    connection.send_only(Statement("ROLLBACK"));
    return std::unexpected(std::move(error));
}

std::unexpected<ApplyError> unknown(std::string why) {
    return std::unexpected(
        final_error({Errc::outcome_unknown, "the change was sent, and its end is not known: " + std::move(why)}));
}

std::expected<Trip, ApplyError> commit(Connection& connection, const Context& context,
                                       const std::vector<Statement>& trip, const CallBudget& budget) {
    Trip written = connection.run(trip, budget);
    if (written.fault) {
        const Fault& fault = *written.fault;
        const bool at_commit = fault.at + 1 == trip.size();
        if (fault.silent() || (fault.fatal && at_commit)) return unknown(fault.message);
        ApplyError failed = apply_error_of(fault, context.busy);
        // Nothing else deletes events, so a role that may do all the rest may lack this right.
        if (fault.sqlstate == "42501" && trip[fault.at].name() == context.statements.cut_events.name()) {
            failed.error = error_of(fault, "prune the audit log");
            failed.error.message += "; it takes the right to DELETE from the table audit; nothing was changed";
        }
        if (fault.sqlstate == "42501" && trip[fault.at].name() == context.statements.mark_used.name()) {
            failed.error = error_of(fault, "mark the store as used, which comes with its first lock");
            failed.error.message += fmt::format(
                "; it takes the right to UPDATE (used) ON {}.meta, or let its owner take a lock once; nothing was "
                "changed",
                context.settings.quoted_schema());
        }
        failed.constraint = fault.constraint;
        return give_up(connection, std::move(failed));
    }
    if (written.half_committed) return unknown("no standby has confirmed it");
    if (std::string_view(PQcmdStatus(written.answers.back().get())) != "COMMIT")
        return std::unexpected(final_error({Errc::store_unavailable, "the server rolled back; nothing was changed"}));
    return written;
}

/// What the batch wrote of each lock, in the order of its changes.
std::vector<base::Bytes> data_of(const std::vector<Change>& changes, Instant now) {
    std::vector<base::Bytes> data;
    for (const Change& change : changes) data.push_back(change.record ? sealed(*change.record, now) : base::Bytes{});
    return data;
}

/// Of what the store says of itself, `store` is what was read in this transaction.
std::vector<Statement> writes(const Context& context, const Identity& store, const std::vector<Change>& changes,
                              const std::vector<base::Bytes>& data, Instant now) {
    const Statements& statements = context.statements;
    std::vector<Statement> trip;
    LockRows rows;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        if (!changes[i].record) continue;
        const auto& held = changes[i].record->held;
        rows.add(*changes[i].record, data[i],
                 held && context.keeper != nullptr ? context.keeper->key_for(changes[i].name, held->lease.lock_id)
                                                   : std::nullopt);
    }
    if (!rows.empty()) {
        rows.bind_to(trip.emplace_back(statements.put_locks), now);
        add_cuts(trip, statements, changes);
        trip.push_back(add_events(statements, changes));
    }
    add_queue(trip, statements, changes, now);
    add_wakes(trip, statements, changes);
    if (!rows.empty() && !store.was_used) trip.emplace_back(statements.mark_used);
    trip.emplace_back(statements.commit);
    return trip;
}

Instant judged_at(const View& view) {
    const bool one = view.locks.size() == 1 && view.locks.begin()->second;
    return one ? not_before(view.locks.begin()->second->record, view.now) : view.now;
}

/// In one round trip. Empty if it takes two, and nothing was changed.
std::optional<std::expected<Applied, ApplyError>> apply_optimistically(Connection& connection, const Context& context,
                                                                       std::span<const Request> requests,
                                                                       const CallBudget& budget) {
    auto batch = OptimisticBatch::make(context, requests, budget);
    if (!batch) return std::nullopt;
    auto done = commit(connection, context, batch->trip(), budget);
    if (!done) {
        batch->mispredicted(context);
        if (done.error().constraint == "locks_pkey") context.optimistic->mispredicted_new_lock();
        if (done.error().error.code != Errc::outcome_unknown) return std::nullopt;
        if (!connection.is_usable()) {
            done.error().kind = Kind::in_doubt;
            done.error().doubt = std::make_shared<const InDoubt>(batch->in_doubt(done.error().error));
        }
        return std::unexpected(std::move(done.error()));
    }
    auto applied = batch->read(context, requests, *done);
    if (!applied) return std::unexpected(final_error(applied.error()));
    return std::move(*applied);
}

/// Whether all that changes is that somebody stands in line now.
bool only_queues(const std::vector<Change>& changes) {
    return changes.size() == 1 && !changes[0].record && changes[0].dropped.empty() && changes[0].put.size() == 1;
}

/// Several clients that join at once have read the same last number, and each needs a number of its own after it.
std::uint64_t random_gap() { return static_cast<std::uint64_t>(base::random_between(0, 1 << 16)); }

/// A place in the queue of a lock that others use is taken without locking the row, so that nobody who is about to take
/// or give back the lock waits for those who come. Only the numbers must differ, which an index sees to. Who looks at
/// the lock after that, as everybody does who waits, misses nothing. Empty if there is something else to do.
std::optional<std::expected<Applied, ApplyError>> join_queue(Connection& connection, const Context& context,
                                                             std::span<const Request> requests,
                                                             const CallBudget& budget) {
    const auto* const acquire = requests.size() == 1 ? std::get_if<Acquire>(&requests[0]) : nullptr;
    if (context.optimistic == nullptr || acquire == nullptr || !acquire->ticket || !acquire->unless_held.empty())
        return std::nullopt;
    if (!context.optimistic->is_contended(acquire->name)) return std::nullopt;
    Batch batch(requests);
    const Trip looked = connection.run(
        std::vector<Statement>{Statement(context.statements.begin_change), enter(context.statements, budget),
                               ask_view(context.statements, context.clock, batch.wanted(), {acquire->name})},
        budget);
    const auto something_else = [&] {
        connection.send_only(Statement("ROLLBACK"));
        return std::nullopt;
    };
    const auto identity = looked.fault ? Result<Identity>(std::unexpected(error_of(*looked.fault, "use the locks")))
                                       : read_identity(looked.answers[1]);
    if (!identity || identity->is_old()) return something_else();
    View view = read_view(looked.answers.back());
    if (view.bound.contains(acquire->name)) return something_else();
    for (auto& [name, lock] : view.locks) {
        // Who has a place may be handed the lock at any moment, unless it holds the row.
        const auto has_place = [&] {
            return std::ranges::find(lock->tickets, acquire->as.lock_id, &kernel::Ticket::lock_id) !=
                   lock->tickets.end();
        };
        if (lock && has_place()) return something_else();
        if (lock) lock->last_number += random_gap();
        batch.found(name, std::move(lock));
    }
    Applied applied{batch.run(view.now), *identity};
    if (!only_queues(batch.changes()) || budget.over()) return something_else();
    const auto data = data_of(batch.changes(), view.now);
    const auto done = commit(connection, context, writes(context, *identity, batch.changes(), data, view.now), budget);
    if (!done && done.error().error.code != Errc::outcome_unknown) return std::nullopt;
    if (!done) return std::unexpected(done.error());
    learn(*context.optimistic, batch.wanted(), batch.changes(), data);
    return applied;
}

}  // namespace

std::expected<Applied, ApplyError> apply_once(Connection& connection, const Context& context,
                                              std::span<const Request> requests, const CallBudget& budget) {
    if (!context.doubt) {
        if (auto applied = apply_optimistically(connection, context, requests, budget)) return std::move(*applied);
        if (auto applied = join_queue(connection, context, requests, budget)) return std::move(*applied);
    }
    Batch batch(requests, context.keeper == nullptr ? Claims::kept : Claims::dropped);
    const std::vector<Wanted>& wanted = batch.wanted();
    const bool waits = context.busy == Busy::wait;
    std::vector<Statement> trip{
        Statement(context.statements.begin_change),
        enter(context.statements, budget, waits ? std::nullopt : std::optional(longest_shared_wait))};
    const std::size_t locking = add_locking(trip, context, wanted);
    trip.push_back(ask_view(context.statements, context.clock, wanted, names_asked_for(requests)));
    const Boottime sent = host_clock().boottime();
    const Trip looked = connection.run(trip, budget);
    const Boottime received = host_clock().boottime();

    // The format comes first: what else a newer one refuses is its own business.
    if (looked.answers.size() > 1) {
        const auto identity = read_identity(looked.answers[1]);
        if (!identity) return give_up(connection, final_error(identity.error()));
        if (identity->is_old()) {
            ApplyError failed = final_error({Errc::format_unsupported, "the store got an older format meanwhile"});
            failed.old_format = true;
            return give_up(connection, std::move(failed));
        }
    }
    if (looked.fault) {
        const bool at_entry = looked.fault->at == 1;
        ApplyError failed = apply_error_of(*looked.fault, context.busy);
        failed.no_store = at_entry && is_missing(*looked.fault);
        failed.old_format = at_entry && has_no_mark(*looked.fault);
        return give_up(connection, std::move(failed));
    }
    View view = read_view(looked.answers.back());
    const auto locked = std::span(looked.answers).last(locking + 1).first(locking);
    if (auto missed = not_held(wanted, view, locked); !missed.empty())
        return give_up(connection, rows_are_locked(std::move(missed), context.busy));
    if (context.doubt) {
        // The rows are ours: what is not there now cannot come any more once we have changed them.
        const Result<LockView>& lock = view.locks.at(context.doubt->name);
        const auto verdict =
            lock ? context.doubt->judge(lock->record.seq, lock->record.chain) : InDoubt::Verdict::not_committed;
        if (verdict != InDoubt::Verdict::not_committed) connection.send_only(Statement("ROLLBACK"));
        if (verdict == InDoubt::Verdict::committed)
            return Applied{context.doubt->replies, *read_identity(looked.answers[1])};
        if (verdict == InDoubt::Verdict::unknowable) return std::unexpected(final_error(context.doubt->error));
    }
    end_orphans(view, context, requests);
    if (context.optimistic != nullptr) context.optimistic->clock.saw(view.now, sent, received);
    const Instant now = judged_at(view);
    for (auto& [name, lock] : view.locks) batch.found(name, std::move(lock));
    Applied applied{batch.run(now), *read_identity(looked.answers[1])};
    const std::vector<base::Bytes> data = data_of(batch.changes(), now);
    if (batch.changes().empty()) {
        connection.send_only(Statement("ROLLBACK"));
    } else {
        // What was decided after the caller's time is not sent: whoever asked may by now be somebody else.
        if (budget.over())
            return give_up(connection, final_error({Errc::store_unavailable,
                                                    "the time for this call is over; nothing was changed"}));
        if (auto done = commit(connection, context, writes(context, applied.store, batch.changes(), data, now), budget);
            !done)
            return std::unexpected(std::move(done.error()));
        if (std::ranges::any_of(batch.changes(), [](const Change& change) { return change.record.has_value(); }))
            applied.store.was_used = true;
    }
    if (context.optimistic != nullptr) learn(*context.optimistic, wanted, batch.changes(), data);
    return applied;
}

}  // namespace holdfast::stores::postgres
