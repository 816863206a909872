#include "stores/postgres/apply.hpp"

#include "base/jitter.hpp"
#include "base/real_clock.hpp"
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

/// Two first uses of a lock conflict at the row that one of them inserts, and no statement can skip that row. A shared
/// batch waits there for as long as a commit takes, and not for a transaction that is stuck.
constexpr std::chrono::milliseconds longest_shared_wait{50};

enum class Hold { none, share, change };

/// How the lock's row is locked. A lock of `unless_held` must not change until the Acquire is committed, so its row is
/// locked, too, but shared. A Check locks nothing: its answer is out of date as soon as it arrives.
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
        // Two Acquires that exclude each other, of two new locks, would not see each other without rows to lock.
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

/// Locks whose rows exist and should be locked, but are not: another transaction has locked them, or has just inserted
/// them.
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

/// Locks whose lease a request may take over: only for these it matters whether the holder's session is gone.
std::set<LockName> names_to_take_over(const std::vector<Wanted>& wanted) {
    std::set<LockName> names;
    for (const Wanted& lock : wanted)
        if (lock.may_take_over) names.insert(lock.name);
    return names;
}

/// The lock_id of the request's credentials, if it has any.
std::optional<LockId> owner_of(const Request& request) {
    return std::visit(
        [](const auto& one) -> std::optional<LockId> {
            if constexpr (requires { one.as.lock_id; }) return one.as.lock_id;
            return std::nullopt;
        },
        request);
}

/// A lease whose holder's session is gone counts as expired for a request that takes over the lock, and not for the
/// holder itself, which may have lost only its connection.
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
    // Two waiters that joined a queue at once chose the same number.
    const bool met_in_queue = fault.sqlstate == "23505" && fault.constraint == "queue_pkey";
    if (fault.sqlstate == "40001" || fault.sqlstate == "40P01" || met_in_queue || fault.session_was_replaced())
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
                                       const std::vector<Statement>& trip, const base::CallBudget& budget) {
    Trip written = connection.run(trip, budget);
    if (written.fault) {
        const Fault& fault = *written.fault;
        const bool at_commit = fault.at + 1 == trip.size();
        if (fault.silent() || (fault.fatal && at_commit)) return unknown(fault.message);
        ApplyError failed = apply_error_of(fault, context.busy);
        // Only pruning deletes events, so a role may lack this right and have all others.
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
    if (written.answers.back().command() != "COMMIT")
        return std::unexpected(final_error({Errc::store_unavailable, "the server rolled back; nothing was changed"}));
    return written;
}

/// What the batch wrote of each lock, in the order of its changes.
std::vector<base::Bytes> data_of(const std::vector<Change>& changes, Instant now) {
    std::vector<base::Bytes> data;
    for (const Change& change : changes) data.push_back(change.record ? sealed(*change.record, now) : base::Bytes{});
    return data;
}

/// `store` is the store's identity as it was read in this transaction.
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
                                                                       const base::CallBudget& budget) {
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

/// True if all that changes is that one waiter gets a place in the queue.
bool only_queues(const std::vector<Change>& changes) {
    return changes.size() == 1 && !changes[0].record && changes[0].dropped.empty() && changes[0].put.size() == 1;
}

/// Clients that join at the same time have read the same last number, so each adds a random gap to get a number of its
/// own.
std::uint64_t random_gap() { return static_cast<std::uint64_t>(base::random_between(0, 1 << 16)); }

/// How the rows of a batch are locked. `by_waiter`: a place in the queue of a lock that others use is taken without the
/// lock's row, so that neither the holder nor the next one waits for new waiters. Only the numbers of tickets must
/// differ, which an index ensures, and every waiter looks at the lock after that. A waiter that has a place keeps it
/// alive with the row, because it may be handed the lock at any moment.
enum class Locking { all, by_waiter };

Locking locking_for(const Context& context, std::span<const Request> requests) {
    const auto* const acquire = requests.size() == 1 ? std::get_if<Acquire>(&requests[0]) : nullptr;
    const bool is_waiter = acquire != nullptr && acquire->ticket && acquire->unless_held.empty();
    return is_waiter && !context.doubt && context.optimistic != nullptr &&
                   context.optimistic->is_contended(acquire->name)
               ? Locking::by_waiter
               : Locking::all;
}

/// As `add_locking`, for a batch that is locked `by_waiter`.
std::size_t add_waiters_locking(std::vector<Statement>& trip, const Context& context,
                                std::span<const Request> requests) {
    const Acquire& acquire = std::get<Acquire>(requests[0]);
    const Statements& statements = context.statements;
    const bool waits = context.busy == Busy::wait;
    trip.push_back(Statement(waits ? statements.lock_in_line : statements.lock_in_line_if_free)
                       .bind(bytes_of(acquire.name.text()))
                       .bind(acquire.as.lock_id));
    return 1;
}

bool has_place(const View& view, std::span<const Request> requests) {
    return view.places.contains(std::get<Acquire>(requests[0]).as.lock_id);
}

std::nullopt_t needs_rows(Connection& connection) {
    connection.send_only(Statement("ROLLBACK"));
    return std::nullopt;
}

/// Why a batch cannot continue after its first round trip. The format is checked first, since a store of a newer format
/// may refuse for reasons that we do not know.
std::optional<ApplyError> error_of_look(const Trip& looked, Busy busy) {
    if (looked.answers.size() > 1) {
        const auto identity = read_identity(looked.answers[1]);
        if (!identity) return final_error(identity.error());
        if (identity->is_old()) {
            ApplyError failed = final_error({Errc::format_unsupported, "the store got an older format meanwhile"});
            failed.old_format = true;
            return failed;
        }
    }
    if (!looked.fault) return std::nullopt;
    const bool at_entry = looked.fault->at == 1;
    ApplyError failed = apply_error_of(*looked.fault, busy);
    failed.no_store = at_entry && is_missing(*looked.fault);
    failed.old_format = at_entry && has_no_mark(*looked.fault);
    return failed;
}

/// Reads first, then writes what was decided. Empty if a batch that is locked `by_waiter` needs all its rows.
std::optional<std::expected<Applied, ApplyError>> apply_by_reading(Connection& connection, const Context& context,
                                                                   std::span<const Request> requests,
                                                                   const base::CallBudget& budget, Locking how) {
    Batch batch(requests, context.keeper == nullptr ? Claims::kept : Claims::dropped);
    const std::vector<Wanted>& wanted = batch.wanted();
    const bool waits = context.busy == Busy::wait;
    std::vector<Statement> trip{
        Statement(context.statements.begin_change),
        enter(context.statements, budget, waits ? std::nullopt : std::optional(longest_shared_wait))};
    const std::size_t locking =
        how == Locking::all ? add_locking(trip, context, wanted) : add_waiters_locking(trip, context, requests);
    trip.push_back(ask_view(context.statements, context.clock, wanted, names_to_take_over(wanted)));
    const Boottime sent = base::real_clock().boottime();
    const Trip looked = connection.run(trip, budget);
    const Boottime received = base::real_clock().boottime();

    if (auto failed = error_of_look(looked, context.busy)) return give_up(connection, std::move(*failed));
    View view = read_view(looked.answers.back());
    const auto locked = std::span(looked.answers).last(locking + 1).first(locking);
    const bool joins = how == Locking::by_waiter && locked[0].count() == 0 && !has_place(view, requests);
    if (joins && !view.bound.empty()) return needs_rows(connection);
    if (auto missed = not_held(wanted, view, locked); !joins && !missed.empty())
        return give_up(connection, rows_are_locked(std::move(missed), context.busy));
    if (context.doubt) {
        // We have locked the rows: the batch in doubt, if it is not there now, cannot be committed after our change.
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
    for (const Wanted& lock : wanted) {
        Result<LockView>& found = view.locks.at(lock.name);
        if (joins && found) found->last_number += random_gap();
        const auto told = tell(batch, lock, std::move(found), [&]() -> Result<kernel::Damage> {
            const Trip traces = connection.run(ask_traces(context.statements, lock.name), budget);
            if (traces.fault) return std::unexpected(error_of(*traces.fault, "look at what is damaged"));
            return read_damage(traces.answers.front(), lock.name, view);
        });
        if (!told) return give_up(connection, final_error(told.error()));
    }
    Applied applied{batch.run(now), *read_identity(looked.answers[1])};
    if (joins && !only_queues(batch.changes())) return needs_rows(connection);
    const std::vector<base::Bytes> data = data_of(batch.changes(), now);
    if (batch.changes().empty()) {
        connection.send_only(Statement("ROLLBACK"));
    } else {
        // After the caller's deadline nothing is sent any more.
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

}  // namespace

std::expected<Applied, ApplyError> apply_once(Connection& connection, const Context& context,
                                              std::span<const Request> requests, const base::CallBudget& budget) {
    if (!context.doubt)
        if (auto applied = apply_optimistically(connection, context, requests, budget)) return std::move(*applied);
    if (auto applied = apply_by_reading(connection, context, requests, budget, locking_for(context, requests)))
        return std::move(*applied);
    return *apply_by_reading(connection, context, requests, budget, Locking::all);
}

}  // namespace holdfast::stores::postgres
