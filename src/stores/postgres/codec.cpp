#include "stores/postgres/codec.hpp"

#include "stores/common/sealed.hpp"
#include "stores/postgres/read.hpp"
#include "values/hex.hpp"
#include "values/text.hpp"

namespace holdfast::stores::postgres {
namespace {

/// For the columns that people read. PostgreSQL stores every character but NUL.
std::string shown(const std::string& text) {
    return text.find('\0') == std::string::npos && is_utf8(text) ? text : printable(text);
}

}  // namespace

void LockRows::add(const kernel::Record& record, base::ByteView data, std::optional<std::int64_t> session_key) {
    const Lease* const lease = record.held ? &record.held->lease : nullptr;
    const auto put = [&](Array& column, auto value) { lease ? column.add(value(*lease)) : column.add_null(); };
    empty_ = false;
    name_.add(record.name.text());
    token_.add(record.token.value);
    put(lock_id_, [](const Lease& l) { return l.lock_id; });
    put(holder_, [](const Lease& l) { return shown(l.holder.text); });
    put(user_, [](const Lease& l) { return shown(l.holder.user); });
    put(operation_, [](const Lease& l) { return shown(l.operation); });
    put(reason_, [](const Lease& l) { return shown(l.reason); });
    put(acquired_, [](const Lease& l) { return l.acquired_at; });
    put(renewed_, [](const Lease& l) { return l.renewed_at; });
    put(expires_, [](const Lease& l) { return l.expires_at; });
    seq_.add(record.seq);
    changed_.add(record.changed_at);
    data_.add(data);
    session_key_.add(session_key);
}

void LockRows::bind_to(Statement& statement, Instant now) const {
    statement.bind(name_).bind(token_).bind(lock_id_).bind(holder_).bind(user_).bind(operation_).bind(reason_);
    statement.bind(acquired_).bind(renewed_).bind(expires_).bind(seq_).bind(changed_).bind(data_).bind(session_key_);
    statement.bind(now.time_since_epoch().count());
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

void add_cuts(std::vector<Statement>& trip, const Statements& statements, const std::vector<Change>& changes) {
    for (const Change& change : changes) {
        if (!change.cut) continue;
        Statement& cut = trip.emplace_back(statements.cut_events);
        cut.bind(bytes_of(change.name.text()));
        cut.bind(static_cast<std::int64_t>(change.cut->after)).bind(static_cast<std::int64_t>(change.cut->through));
    }
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
    Array cleared(Type::bytes);
    bool clears = false;
    for (const Change& change : changes) {
        if (!change.clears_queue) continue;
        clears = true;
        cleared.add(change.name.text());
    }
    if (clears) trip.push_back(Statement(statements.clear_queues).bind(cleared));
    if (drops) trip.push_back(Statement(statements.drop_tickets).bind(dropped_name).bind(dropped));
    if (!puts) return;
    Statement put(statements.put_tickets);
    put.bind(name).bind(number).bind(lock_id).bind(holder).bind(expires).bind(data);
    trip.push_back(put.bind(now.time_since_epoch().count()));
}

void add_wakes(std::vector<Statement>& trip, const Statements& statements, const std::vector<Change>& changes) {
    // Only where somebody waits, or has lost a lease: every notifying transaction takes a lock of the whole server at
    // its commit.
    Array channels(Type::text);
    bool wakes = false;
    for (const Change& change : changes) {
        for (const auto& called : {change.next, change.lost_lease}) {
            if (!called) continue;
            wakes = true;
            channels.add(channel_of(*called));
        }
    }
    if (wakes) trip.push_back(Statement(statements.wake).bind(channels));
}

std::string channel_of(const LockId& called) { return "holdfast_" + to_hex(called.bytes()); }

}  // namespace holdfast::stores::postgres
