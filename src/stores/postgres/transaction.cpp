#include "stores/postgres/transaction.hpp"

#include "kernel/step.hpp"
#include "stores/batch/sealed.hpp"
#include "stores/postgres/schema.hpp"
#include "values/hex.hpp"
#include "values/sha256.hpp"
#include "values/text.hpp"

#include <algorithm>
#include <set>

namespace holdfast::stores::postgres {
namespace {

using Remedy = Obstacle::Remedy;

enum class Hold { none, share, change };

/// How each lock's row is to be held. What excludes an Acquire must not change until it is committed, so it is held,
/// too, but many may do that at once. Who only checks holds nothing: his answer is old as soon as he has it.
std::vector<Hold> holds_of(std::span<const Request> requests, const std::vector<Wanted>& wanted) {
    std::set<LockName> excluding;
    for (const Request& request : requests)
        if (std::holds_alternative<Acquire>(request))
            for (const LockName& name : kernel::others_of(request)) excluding.insert(name);
    std::vector<Hold> holds;
    for (const Wanted& lock : wanted)
        holds.push_back(lock.may_change ? Hold::change : excluding.contains(lock.name) ? Hold::share : Hold::none);
    return holds;
}

/// Rows for locks that may have none, then all row locks in byte order of the names, so that batches queue up behind
/// each other instead of blocking each other. Neighbours that are held the same way share a statement.
void add_locking(std::vector<Statement>& trip, const Statements& statements, std::span<const Request> requests,
                 const std::vector<Wanted>& wanted) {
    const std::vector<Hold> holds = holds_of(requests, wanted);
    Array missing(Type::bytes);
    bool any = false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        // Two that exclude each other and are both new would not see each other without a row to meet at.
        if (!wanted[i].may_create && holds[i] != Hold::share) continue;
        missing.add(wanted[i].name.text());
        any = true;
    }
    if (any) trip.push_back(Statement(statements.place).bind(missing));
    for (std::size_t i = 0; i < wanted.size();) {
        const Hold hold = holds[i];
        Array names(Type::bytes);
        for (; i < wanted.size() && holds[i] == hold; ++i) names.add(wanted[i].name.text());
        if (hold == Hold::none) continue;
        trip.push_back(
            Statement(hold == Hold::change ? statements.lock_to_change : statements.lock_to_look).bind(names));
    }
}

/// For the columns that people read. PostgreSQL stores every character but NUL.
std::string shown(const std::string& text) {
    return text.find('\0') == std::string::npos && is_utf8(text) ? text : printable(text);
}

Statement put_locks(const Context& context, const std::vector<Change>& changes, Instant now) {
    Array name(Type::bytes), token(Type::number), lock_id(Type::uuid), holder(Type::text), user(Type::text),
        operation(Type::text), reason(Type::text), acquired(Type::number), renewed(Type::number), expires(Type::number),
        seq(Type::number), changed(Type::number), data(Type::bytes), session_key(Type::number);
    for (const Change& change : changes) {
        if (!change.record) continue;
        const kernel::Record& record = *change.record;
        const Lease* const lease = record.held ? &record.held->lease : nullptr;
        const auto add = [&](Array& column, auto value) { lease ? column.add(value(*lease)) : column.add_null(); };
        name.add(change.name.text());
        token.add(record.token.value);
        add(lock_id, [](const Lease& l) { return l.lock_id; });
        add(holder, [](const Lease& l) { return shown(l.holder.text); });
        add(user, [](const Lease& l) { return shown(l.holder.user); });
        add(operation, [](const Lease& l) { return shown(l.operation); });
        add(reason, [](const Lease& l) { return shown(l.reason); });
        add(acquired, [](const Lease& l) { return l.acquired_at; });
        add(renewed, [](const Lease& l) { return l.renewed_at; });
        add(expires, [](const Lease& l) { return l.expires_at; });
        seq.add(record.seq);
        changed.add(record.changed_at);
        data.add(base::ByteView(sealed(record, now)));
        session_key.add(lease != nullptr && context.keeper != nullptr
                            ? context.keeper->key_for(change.name, lease->lock_id)
                            : std::nullopt);
    }
    Statement statement(context.statements.put_locks);
    statement.bind(name).bind(token).bind(lock_id).bind(holder).bind(user).bind(operation).bind(reason);
    statement.bind(acquired).bind(renewed).bind(expires).bind(seq).bind(changed).bind(data).bind(session_key);
    statement.bind(now.time_since_epoch().count());
    return statement;
}

Statement add_events(const Statements& statements, const std::vector<Change>& changes) {
    Array name(Type::bytes), seq(Type::number), at(Type::number), event(Type::text), token(Type::number),
        lock_id(Type::uuid), holder(Type::text), user(Type::text), actor(Type::text), reason(Type::text),
        data(Type::bytes);
    for (const Change& change : changes)
        for (const AuditEvent& one : change.events) {
            name.add(one.name.text());
            seq.add(one.seq);
            at.add(one.at);
            event.add(name_of(one.kind));
            token.add(one.token.value);
            lock_id.add(one.lock_id);
            holder.add(shown(one.holder.text));
            user.add(shown(one.holder.user));
            actor.add(shown(one.actor));
            reason.add(shown(one.reason));
            data.add(base::ByteView(sealed(one)));
        }
    Statement statement(statements.add_events);
    statement.bind(name).bind(seq).bind(at).bind(event).bind(token).bind(lock_id);
    statement.bind(holder).bind(user).bind(actor).bind(reason).bind(data);
    return statement;
}

void add_queue(std::vector<Statement>& trip, const Statements& statements, const std::vector<Change>& changes,
               Instant now) {
    Array dropped_name(Type::bytes), dropped(Type::uuid);
    Array name(Type::bytes), number(Type::number), lock_id(Type::uuid), holder(Type::text), expires(Type::number),
        data(Type::bytes);
    bool drops = false;
    bool puts = false;
    for (const Change& change : changes) {
        for (const kernel::Ticket& ticket : change.dropped) {
            drops = true;
            dropped_name.add(change.name.text());
            dropped.add(ticket.lock_id);
        }
        for (const kernel::Ticket& ticket : change.put) {
            puts = true;
            name.add(change.name.text());
            number.add(ticket.number);
            lock_id.add(ticket.lock_id);
            holder.add(shown(ticket.holder.text));
            expires.add(ticket.expires_at);
            data.add(base::ByteView(sealed(ticket, now)));
        }
    }
    if (drops) trip.push_back(Statement(statements.drop_tickets).bind(dropped_name).bind(dropped));
    if (!puts) return;
    Statement put(statements.put_tickets);
    put.bind(name).bind(number).bind(lock_id).bind(holder).bind(expires).bind(data);
    trip.push_back(put.bind(now.time_since_epoch().count()));
}

std::vector<Statement> writes(const Context& context, const std::vector<Change>& changes, Instant now) {
    const Statements& statements = context.statements;
    std::vector<Statement> trip;
    const auto has_record = [](const Change& change) { return change.record.has_value(); };
    if (std::ranges::any_of(changes, has_record)) {
        trip.push_back(put_locks(context, changes, now));
        trip.push_back(add_events(statements, changes));
    }
    add_queue(trip, statements, changes, now);
    // Only where somebody waits: every notifying transaction takes a lock of the whole server at its commit.
    Array channels(Type::text), payloads(Type::text);
    bool wakes = false;
    for (const Change& change : changes) {
        if (!change.next) continue;
        wakes = true;
        channels.add(channel_of(context.settings, change.name));
        payloads.add(change.next->text());
    }
    if (wakes) trip.push_back(Statement(statements.wake).bind(channels).bind(payloads));
    trip.emplace_back("COMMIT");
    return trip;
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
Obstacle obstacle_of(const Fault& fault) {
    Error error = error_of(fault, "use the locks");
    if (fault.sqlstate == "40001" || fault.sqlstate == "40P01" || fault.is_strangers())
        return {Remedy::repeat, std::move(error)};
    if (fault.silent() || fault.fatal) return {Remedy::reconnect, std::move(error)};
    return {Remedy::none, std::move(error)};
}

std::unexpected<Obstacle> give_up(Connection& connection, Obstacle obstacle) {
    connection.send_only(Statement("ROLLBACK"));
    return std::unexpected(std::move(obstacle));
}

std::unexpected<Obstacle> unknown(std::string why) {
    return std::unexpected(Obstacle{
        Remedy::none, {Errc::outcome_unknown, "the change was sent, and its end is not known: " + std::move(why)}});
}

std::expected<void, Obstacle> commit(Connection& connection, const std::vector<Statement>& trip, const Budget& budget) {
    const Trip written = connection.run(trip, budget);
    if (written.fault) {
        const Fault& fault = *written.fault;
        const bool at_commit = fault.at + 1 == trip.size();
        if (fault.silent() || (fault.fatal && at_commit)) return unknown(fault.message);
        return give_up(connection, obstacle_of(fault));
    }
    if (written.half_committed) return unknown("no standby has confirmed it");
    if (std::string_view(PQcmdStatus(written.answers.back().get())) != "COMMIT")
        return std::unexpected(
            Obstacle{Remedy::none, {Errc::store_unavailable, "the server rolled back; nothing was changed"}});
    return {};
}

}  // namespace

std::expected<Applied, Obstacle> apply_once(Connection& connection, const Context& context,
                                            std::span<const Request> requests, const Budget& budget) {
    Batch batch(requests);
    std::vector<Statement> trip{begin_change(), enter(context.statements, budget)};
    add_locking(trip, context.statements, requests, batch.wanted());
    trip.push_back(ask_view(context.statements, context.clock, batch.wanted(), names_asked_for(requests)));
    const Trip looked = connection.run(trip, budget);

    // The format comes first: what else a newer one refuses is its own business.
    if (looked.answers.size() > 1) {
        if (const auto identity = read_identity(looked.answers[1]); !identity)
            return give_up(connection, {Remedy::none, identity.error()});
    }
    if (looked.fault) {
        const bool no_store = looked.fault->at == 1 && is_missing(*looked.fault);
        return give_up(connection, no_store ? Obstacle{Remedy::create, error_of(*looked.fault, "use the locks")}
                                            : obstacle_of(*looked.fault));
    }
    View view = read_view(looked.answers.back());
    end_orphans(view, context, requests);
    for (auto& [name, lock] : view.locks) batch.found(name, std::move(lock));
    Applied applied{batch.run(view.now), *read_identity(looked.answers[1])};
    if (batch.changes().empty()) {
        connection.send_only(Statement("ROLLBACK"));
        return applied;
    }
    // What was decided after the caller's time is not sent: whoever asked may by now be somebody else.
    if (budget.over())
        return give_up(connection, {Remedy::none,
                                    {Errc::store_unavailable, "the time for this call is over; nothing was changed"}});
    if (auto done = commit(connection, writes(context, batch.changes(), view.now), budget); !done)
        return std::unexpected(std::move(done.error()));
    return applied;
}

std::string channel_of(const Settings& settings, const LockName& name) {
    const std::string what = settings.schema + '\0' + name.text();
    const Digest digest = sha256(bytes_of(what));
    return "holdfast_" + to_hex(std::span(digest).first(16));
}

}  // namespace holdfast::stores::postgres
