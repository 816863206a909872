#include "stores/postgres/transaction.hpp"

#include "kernel/step.hpp"
#include "stores/batch/sealed.hpp"
#include "stores/postgres/guess.hpp"
#include "stores/postgres/schema.hpp"
#include "stores/postgres/writing.hpp"

#include <algorithm>
#include <iterator>
#include <random>
#include <set>

namespace holdfast::stores::postgres {
namespace {

using Remedy = Obstacle::Remedy;

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

/// A fault before COMMIT was sent: the server has undone everything, or will.
Obstacle obstacle_of(const Fault& fault, Busy busy) {
    Error error = error_of(fault, "use the locks");
    // Two who joined a queue at once chose the same number.
    const bool met_in_queue = fault.sqlstate == "23505" && fault.constraint == "queue_pkey";
    if (fault.sqlstate == "40001" || fault.sqlstate == "40P01" || met_in_queue || fault.is_strangers())
        return {Remedy::repeat, std::move(error)};
    if (fault.silent() || fault.fatal) return {Remedy::reconnect, std::move(error)};
    const bool timed_out = fault.sqlstate == "55P03";
    return {timed_out && busy == Busy::report ? Remedy::wait : Remedy::none, std::move(error)};
}

Obstacle somebody_has(std::vector<LockName> locks, Busy busy) {
    return {busy == Busy::report ? Remedy::wait : Remedy::repeat,
            {Errc::store_unavailable, "somebody else holds the row of a lock; nothing was changed"},
            std::move(locks)};
}

std::unexpected<Obstacle> give_up(Connection& connection, Obstacle obstacle) {
    connection.send_only(Statement("ROLLBACK"));
    return std::unexpected(std::move(obstacle));
}

std::unexpected<Obstacle> unknown(std::string why) {
    return std::unexpected(Obstacle{
        Remedy::none, {Errc::outcome_unknown, "the change was sent, and its end is not known: " + std::move(why)}});
}

std::expected<Trip, Obstacle> commit(Connection& connection, const Context& context, const std::vector<Statement>& trip,
                                     const Budget& budget) {
    Trip written = connection.run(trip, budget);
    if (written.fault) {
        const Fault& fault = *written.fault;
        const bool at_commit = fault.at + 1 == trip.size();
        if (fault.silent() || (fault.fatal && at_commit)) return unknown(fault.message);
        Obstacle obstacle = obstacle_of(fault, context.busy);
        // Nothing else deletes events, so a role that may do all the rest may lack this right.
        if (fault.sqlstate == "42501" && trip[fault.at].name() == context.statements.cut_events.name()) {
            obstacle.error = error_of(fault, "prune the audit log");
            obstacle.error.message += "; it takes the right to DELETE from the table audit; nothing was changed";
        }
        obstacle.constraint = fault.constraint;
        return give_up(connection, std::move(obstacle));
    }
    if (written.half_committed) return unknown("no standby has confirmed it");
    if (std::string_view(PQcmdStatus(written.answers.back().get())) != "COMMIT")
        return std::unexpected(
            Obstacle{Remedy::none, {Errc::store_unavailable, "the server rolled back; nothing was changed"}});
    return written;
}

/// What the batch wrote of each lock, in the order of its changes.
std::vector<base::Bytes> data_of(const std::vector<Change>& changes, Instant now) {
    std::vector<base::Bytes> data;
    for (const Change& change : changes) data.push_back(change.record ? sealed(*change.record, now) : base::Bytes{});
    return data;
}

std::vector<Statement> writes(const Context& context, const std::vector<Change>& changes,
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
    trip.emplace_back(statements.commit);
    return trip;
}

Instant judged_at(const View& view) {
    const bool one = view.locks.size() == 1 && view.locks.begin()->second;
    return one ? not_before(view.locks.begin()->second->record, view.now) : view.now;
}

/// In one round trip. Empty if it takes two, and nothing was changed.
std::optional<std::expected<Applied, Obstacle>> apply_by_guess(Connection& connection, const Context& context,
                                                               std::span<const Request> requests,
                                                               const Budget& budget) {
    auto guess = Guess::make(context, requests, budget);
    if (!guess) return std::nullopt;
    auto done = commit(connection, context, guess->trip(), budget);
    if (!done) {
        guess->was_wrong(context);
        if (done.error().constraint == "locks_pkey") context.knowledge->locks.took_for_new();
        if (done.error().error.code != Errc::outcome_unknown) return std::nullopt;
        if (!connection.usable()) {
            done.error().remedy = Remedy::look;
            done.error().doubt = std::make_shared<const Doubt>(guess->doubt(done.error().error));
        }
        return std::unexpected(std::move(done.error()));
    }
    auto applied = guess->read(context, requests, *done);
    if (!applied) return std::unexpected(Obstacle{Remedy::none, applied.error()});
    return std::move(*applied);
}

/// Whether all that changes is that somebody stands in line now.
bool only_queues(const std::vector<Change>& changes) {
    return changes.size() == 1 && !changes[0].record && changes[0].dropped.empty() && changes[0].put.size() == 1;
}

/// Several join at once who have seen the same last number, and each needs one of its own behind it.
std::uint64_t some_distance() {
    static thread_local std::minstd_rand random(std::random_device{}());
    return std::uniform_int_distribution<std::uint64_t>(0, 1 << 16)(random);
}

/// A place in the queue of a lock that others use is taken without locking the row, so that nobody who is about to take
/// or give back the lock waits for those who come. Only the numbers must differ, which an index sees to. Who looks at
/// the lock after that, as everybody does who waits, misses nothing. Empty if there is something else to do.
std::optional<std::expected<Applied, Obstacle>> join_queue(Connection& connection, const Context& context,
                                                           std::span<const Request> requests, const Budget& budget) {
    const auto* const acquire = requests.size() == 1 ? std::get_if<Acquire>(&requests[0]) : nullptr;
    if (context.knowledge == nullptr || acquire == nullptr || !acquire->ticket || !acquire->unless_held.empty())
        return std::nullopt;
    Memory& memory = context.knowledge->locks;
    if (!memory.is_avoided(acquire->name)) return std::nullopt;
    Batch batch(requests);
    const Trip looked = connection.run(
        std::vector<Statement>{Statement(context.statements.begin_change), enter(context.statements, budget),
                               ask_view(context.statements, context.clock, batch.wanted(), {acquire->name})},
        budget);
    const auto something_else = [&] {
        connection.send_only(Statement("ROLLBACK"));
        return std::nullopt;
    };
    const auto identity = looked.fault ? Result<StoreId>(std::unexpected(error_of(*looked.fault, "use the locks")))
                                       : read_identity(looked.answers[1]);
    if (!identity) return something_else();
    View view = read_view(looked.answers.back());
    if (view.bound.contains(acquire->name)) return something_else();
    for (auto& [name, lock] : view.locks) {
        // Who has a place may be handed the lock at any moment, unless it holds the row.
        const auto has_place = [&] {
            return std::ranges::find(lock->tickets, acquire->as.lock_id, &kernel::Ticket::lock_id) !=
                   lock->tickets.end();
        };
        if (lock && has_place()) return something_else();
        if (lock) lock->last_number += some_distance();
        batch.found(name, std::move(lock));
    }
    Applied applied{batch.run(view.now), *identity};
    if (!only_queues(batch.changes()) || budget.over()) return something_else();
    const auto data = data_of(batch.changes(), view.now);
    const auto done = commit(connection, context, writes(context, batch.changes(), data, view.now), budget);
    if (!done && done.error().error.code != Errc::outcome_unknown) return std::nullopt;
    if (!done) return std::unexpected(done.error());
    learn(memory, batch.wanted(), batch.changes(), data);
    return applied;
}

}  // namespace

std::expected<Applied, Obstacle> apply_once(Connection& connection, const Context& context,
                                            std::span<const Request> requests, const Budget& budget) {
    if (!context.doubt) {
        if (auto applied = apply_by_guess(connection, context, requests, budget)) return std::move(*applied);
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
        if (const auto identity = read_identity(looked.answers[1]); !identity)
            return give_up(connection, {Remedy::none, identity.error()});
    }
    if (looked.fault) {
        const bool no_store = looked.fault->at == 1 && is_missing(*looked.fault);
        return give_up(connection, no_store ? Obstacle{Remedy::create, error_of(*looked.fault, "use the locks")}
                                            : obstacle_of(*looked.fault, context.busy));
    }
    View view = read_view(looked.answers.back());
    const auto locked = std::span(looked.answers).last(locking + 1).first(locking);
    if (auto missed = not_held(wanted, view, locked); !missed.empty())
        return give_up(connection, somebody_has(std::move(missed), context.busy));
    if (context.doubt) {
        // The rows are ours: what is not there now cannot come any more once we have changed them.
        const Result<LockView>& lock = view.locks.at(context.doubt->name);
        const bool has_moved_on = lock && lock->record.seq >= context.doubt->seq;
        if (has_moved_on) connection.send_only(Statement("ROLLBACK"));
        if (has_moved_on && lock->record.chain == context.doubt->chain)
            return Applied{context.doubt->replies, *read_identity(looked.answers[1])};
        if (has_moved_on) return std::unexpected(Obstacle{Remedy::none, context.doubt->error});
    }
    end_orphans(view, context, requests);
    if (context.knowledge != nullptr) context.knowledge->clock.saw(view.now, sent, received);
    const Instant now = judged_at(view);
    for (auto& [name, lock] : view.locks) batch.found(name, std::move(lock));
    Applied applied{batch.run(now), *read_identity(looked.answers[1])};
    const std::vector<base::Bytes> data = data_of(batch.changes(), now);
    if (batch.changes().empty()) {
        connection.send_only(Statement("ROLLBACK"));
    } else {
        // What was decided after the caller's time is not sent: whoever asked may by now be somebody else.
        if (budget.over())
            return give_up(
                connection,
                {Remedy::none, {Errc::store_unavailable, "the time for this call is over; nothing was changed"}});
        if (auto done = commit(connection, context, writes(context, batch.changes(), data, now), budget); !done)
            return std::unexpected(std::move(done.error()));
    }
    if (context.knowledge != nullptr) learn(context.knowledge->locks, wanted, batch.changes(), data);
    return applied;
}

}  // namespace holdfast::stores::postgres
