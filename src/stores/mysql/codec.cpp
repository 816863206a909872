#include "stores/mysql/codec.hpp"

#include "kernel/step.hpp"
#include "stores/mysql/schema.hpp"

#include <utility>

namespace holdfast::stores::mysql {
namespace {

using kernel::Record;

/// People, fences and waiters read the columns, so these must agree with the value.
bool agrees(const Row& row, const Record& record) {
    const std::string lock_id = record.held ? record.held->lease.lock_id.text() : "";
    return std::cmp_equal(row.number(1), record.token.value) && row.is_null(2) == !record.held &&
           row.text(2) == lock_id && std::cmp_equal(row.number(3), record.seq);
}

template <class Rows>
void put_lease(Rows& rows, const std::optional<kernel::HeldLease>& held) {
    if (!held) {
        for (int text = 0; text < 4; ++text) rows.no_value();
        for (int time = 0; time < 2; ++time) rows.no_number();
        return;
    }
    const Lease& lease = held->lease;
    rows.value(lease.lock_id.text());
    rows.value(lease.holder.text);
    rows.value(lease.operation);
    rows.value(lease.reason);
    rows.number(lease.acquired_at);
    rows.number(lease.expires_at);
}

/// A lock that has tickets and was never granted has a row, too: all requests for it lock that row.
template <class Rows>
void put_lock(Rows& rows, const Change& change, Instant now, bool is_bound_to_session) {
    const Record& record = change.record ? *change.record : kernel::blank(change.name);
    rows.value(change.name.text());
    rows.number(record.token.value);
    put_lease(rows, record.held);
    rows.number(std::int64_t{is_bound_to_session});
    rows.number(record.seq);
    rows.number(record.changed_at);
    if (change.record)
        rows.value(sealed(record, now));
    else
        rows.no_value();
}

template <class Rows>
void put_event(Rows& rows, const AuditEvent& event) {
    rows.value(event.name.text());
    rows.number(event.seq);
    rows.number(event.at);
    rows.value(name_of(event.kind));
    rows.number(event.token.value);
    rows.value(event.lock_id.text());
    rows.value(event.holder.text);
    rows.value(event.actor);
    rows.value(event.reason);
    rows.value(sealed(event));
}

/// The rows of all statements, each of which may have none.
template <class Rows>
struct Written {
    Rows added{};
    Rows put{};
    Rows events{};
};
template <class Rows>
Written<Rows> written(const Writing& writing) {
    Written<Rows> all;
    for (const Change& change : writing.changes) {
        const bool is_fresh = writing.fresh.contains(change.name);
        if (is_fresh || change.record) {
            Rows& rows = is_fresh ? all.added : all.put;
            rows.begin();
            put_lock(rows, change, writing.now, change.record && writing.sessions.contains(change.name));
            rows.end();
        }
        for (const AuditEvent& event : change.events) {
            all.events.begin();
            put_event(all.events, event);
            all.events.end();
        }
    }
    return all;
}

constexpr Sql::Text insert_locks =
    "INSERT INTO holdfast_locks (name, token, lock_id, holder, operation, reason, acquired_at, expires_at, session, "
    "seq, changed_at, data) ";
constexpr Sql::Text replace_locks =
    " ON DUPLICATE KEY UPDATE token = VALUES(token), lock_id = VALUES(lock_id), holder = VALUES(holder), "
    "operation = VALUES(operation), reason = VALUES(reason), acquired_at = VALUES(acquired_at), "
    "expires_at = VALUES(expires_at), session = VALUES(session), seq = VALUES(seq), "
    "changed_at = VALUES(changed_at), data = VALUES(data)";
constexpr Sql::Text insert_events =
    "INSERT INTO holdfast_audit (name, seq, at, event, token, lock_id, holder, actor, reason, data) ";

}  // namespace

Result<std::optional<Unsealed<Record>>> read_lock(const Row& row, const LockName& name, const Judging& judging) {
    if (row.number(3) == 0 && row.is_null(5)) {
        // A lock with a history was used. Taking it for a free one would let a second holder in.
        const bool blank = row.number(1) == 0 && row.is_null(2) && row.number(6) == 0;
        if (!blank) return std::unexpected(unreadable(name, "the record"));
        return std::nullopt;
    }
    auto record = unsealed_record(row.bytes(5), name, judging.now, judging.tolerance);
    if (!record) return std::unexpected(record.error());
    if (!agrees(row, record->value)) return std::unexpected(unreadable(name, "the record"));
    return std::move(*record);
}

Sql select_traces(const LockName& name) {
    Sql sql;
    sql << select_lock
        << ", (SELECT MAX(a.seq) FROM holdfast_audit a WHERE a.name = l.name), "
           "(SELECT MAX(a.token) FROM holdfast_audit a WHERE a.name = l.name), "
           "(SELECT a.data FROM holdfast_audit a WHERE a.name = l.name ORDER BY a.seq DESC LIMIT 1), "
           "(SELECT a.data FROM holdfast_audit a WHERE a.name = l.name ORDER BY a.seq LIMIT 1) "
           "FROM holdfast_locks l WHERE l.name = ";
    return sql.value(name.text());
}

kernel::Damage read_damage(Answer& answer, const LockName& name, std::vector<base::Bytes> tickets,
                           const Judging& judging) {
    Traces traces{.tickets = std::move(tickets)};
    bool is_sound = false;
    if (const auto row = answer.next()) {
        const auto bytes_at = [&](std::size_t column) -> std::optional<base::Bytes> {
            if (row->is_null(column)) return std::nullopt;
            const base::ByteView bytes = row->bytes(column);
            return base::Bytes(bytes.begin(), bytes.end());
        };
        const auto number_at = [&](std::size_t column) -> std::uint64_t {
            return row->is_null(column) ? 0 : static_cast<std::uint64_t>(row->number(column));
        };
        traces.record = bytes_at(5);
        traces.seq = std::max(number_at(3), number_at(columns_of_lock));
        traces.token = {std::max(number_at(1), number_at(columns_of_lock + 1))};
        traces.newest = bytes_at(columns_of_lock + 2);
        traces.oldest = bytes_at(columns_of_lock + 3);
        is_sound = read_lock(*row, name, judging).has_value();
    }
    return damage_in(traces, name, is_sound, judging.now);
}

Sql list_of(std::span<const LockName> names) {
    Sql sql("(");
    Comma comma;
    for (const LockName& name : names) (sql << comma.next()).value(name.text());
    return sql << ")";
}

Sql statements_for(const Writing& writing) {
    const auto [added, put, events] = written<TextRows>(writing);
    Sql sql;
    if (!added.sql().empty()) sql << insert_locks << "VALUES " << added.sql() << "; ";
    if (!put.sql().empty()) sql << insert_locks << "VALUES " << put.sql() << replace_locks << "; ";
    if (!events.sql().empty()) sql << insert_events << "VALUES " << events.sql() << "; ";
    return sql;
}

std::vector<BoundStatement> bound_statements_for(const Writing& writing) {
    static const Sql add = Sql(insert_locks) << "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    static const Sql replace = Sql(add) << replace_locks;
    static const Sql add_event = Sql(insert_events) << "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    auto [added, put, events] = written<BoundRows>(writing);
    std::vector<BoundStatement> statements;
    if (added.count() != 0) statements.emplace_back(add, std::move(added));
    if (put.count() != 0) statements.emplace_back(replace, std::move(put));
    if (events.count() != 0) statements.emplace_back(add_event, std::move(events));
    return statements;
}

Sql put_lock_if(const Change& change, Instant now, const Sql& condition) {
    TextRows values;
    put_lock(values, change, now, false);
    return Sql(insert_locks) << "SELECT " << values.sql() << " " << condition
                             << (change.is_new ? Sql::Text("") : replace_locks) << "; ";
}

Sql add_event_if(const AuditEvent& event, const Sql& condition) {
    TextRows values;
    put_event(values, event);
    return Sql(insert_events) << "SELECT " << values.sql() << " " << condition << "; ";
}

Sql cut_events(std::span<const Change> changes) {
    Sql sql;
    for (const Change& change : changes) {
        // A new lock has no older events to remove. If there are any, `expect_no_history` must find them.
        if (!change.cut || change.is_new) continue;
        // It must not touch events that others are writing, or it would wait for them. The hint, which only this form
        // of DELETE accepts, rules out a scan of the table; and the event after the range belongs to this lock, since
        // its newest one always stays.
        sql << "DELETE a FROM holdfast_audit a FORCE INDEX (PRIMARY) WHERE a.name = ";
        sql.value(change.name.text()) << " AND a.seq > " << change.cut->after << " AND a.seq <= " << change.cut->through
                                      << "; ";
    }
    return sql;
}

Sql expect_no_history(const Writing& writing) {
    std::vector<LockName> names;
    std::uint64_t events = 0;
    for (const Change& change : writing.changes) {
        if (!writing.fresh.contains(change.name)) continue;
        names.push_back(change.name);
        events += change.events.size();
    }
    if (names.empty()) return {};
    // ~0 is the greatest number, so adding to it is an error, and only an error keeps the server from running the
    // statements that follow.
    return Sql("SELECT IF(COUNT(*) = ") << events
                                        << ", 0, ~0 + COUNT(*)) FROM holdfast_audit FORCE INDEX (PRIMARY) "
                                           "WHERE name IN "
                                        << list_of(names) << "; ";
}

Result<AuditEvent> read_event(const Row& row) {
    auto event = unsealed_event(row.bytes(3));
    if (!event) return event;
    if (event->name.text() != row.text(0) || std::cmp_not_equal(event->seq, row.number(1)) ||
        std::cmp_not_equal(event->token.value, row.number(2)))
        return fail(Errc::record_corrupt, "an event of the audit log cannot be read");
    return event;
}

}  // namespace holdfast::stores::mysql
