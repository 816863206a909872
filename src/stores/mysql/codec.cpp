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

template <class Rows, class Number>
void number_or_null(Rows& rows, const std::optional<Number>& number) {
    if (number)
        rows.number(*number);
    else
        rows.no_number();
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
void put_lock(Rows& rows, const Change& change, Instant now, bool session) {
    const Record& record = change.record ? *change.record : kernel::blank(change.name);
    rows.value(change.name.text());
    rows.number(record.token.value);
    put_lease(rows, record.held);
    rows.number(std::int64_t{session});
    rows.number(record.seq);
    rows.number(record.changed_at);
    if (change.record)
        rows.value(sealed(record, now));
    else
        rows.no_value();
}

template <class Rows>
void put_event(Rows& rows, const AuditEvent& event, const Prediction* prediction = nullptr) {
    rows.begin();
    rows.value(event.name.text());
    rows.number(event.seq);
    rows.number(event.at);
    rows.value(name_of(event.kind));
    if (prediction != nullptr) {
        rows.value(prediction->store_id.text());
        number_or_null(rows, prediction->judged);
        rows.number(prediction->window.earliest);
        rows.number(prediction->window.latest);
    }
    rows.number(event.token.value);
    rows.value(event.lock_id.text());
    rows.value(event.holder.text);
    rows.value(event.actor);
    rows.value(event.reason);
    rows.value(sealed(event));
    rows.end();
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
        for (const AuditEvent& event : change.events) put_event(all.events, event);
    }
    return all;
}

constexpr Sql::Text insert_locks =
    "INSERT INTO holdfast_locks (name, token, lock_id, holder, operation, reason, acquired_at, expires_at, session, "
    "seq, changed_at, data) ";
/// All but `seq`.
constexpr Sql::Text replace_rest =
    ", token = VALUES(token), lock_id = VALUES(lock_id), holder = VALUES(holder), "
    "operation = VALUES(operation), reason = VALUES(reason), acquired_at = VALUES(acquired_at), "
    "expires_at = VALUES(expires_at), session = VALUES(session), "
    "changed_at = VALUES(changed_at), data = VALUES(data)";
constexpr Sql::Text replace_locks = " ON DUPLICATE KEY UPDATE seq = VALUES(seq)";
constexpr Sql::Text insert_events =
    "INSERT INTO holdfast_audit (name, seq, at, event, token, lock_id, holder, actor, reason, data) ";

/// A statement, with its `;`, that fails unless `rows`, which begins with FROM, has so many rows. Only an error keeps
/// the server from running the statements that follow.
Sql expect_count(std::uint64_t count, const Sql& rows) {
    // ~0 is the greatest number, so adding to it is an error; and the server counts before it adds.
    return Sql("SELECT IF(COUNT(*) = ") << count << ", 0, ~0 + (COUNT(*) + 1)) " << rows << "; ";
}

/// Locks the rows, in the order of their key.
Sql expect_locks(std::span<const KnownLock> locks) {
    std::uint64_t count = 0;
    Sql rows("FROM holdfast_locks FORCE INDEX (PRIMARY) WHERE ");
    for (const KnownLock& lock : locks) {
        const Record& record = lock.record;
        if (record.seq == 0) continue;
        if (count++ != 0) rows << " OR ";
        (rows << "(name = ").value(record.name.text())
            << " AND seq = " << record.seq << " AND token = " << record.token.value << " AND session = 0 AND lock_id ";
        if (record.held)
            (rows << "= ").value(record.held->lease.lock_id.text());
        else
            rows << "IS NULL";
        (rows << " AND data = ").value(sealed(record, lock.written_at)) << ")";
    }
    return count == 0 ? Sql() : expect_count(count, rows << " FOR UPDATE NOWAIT");
}

Sql expect_rest(const Writing& writing, const Prediction& prediction) {
    std::vector<LockName> names;
    for (const Change& change : writing.changes) names.push_back(change.name);
    Sql rows("FROM holdfast_meta WHERE ");
    (rows << is_store << "store_id = ").value(prediction.store_id.text()) << " AND ";
    if (prediction.judged)
        rows << *prediction.judged;
    else
        rows << now_of_server;
    rows << " BETWEEN " << prediction.window.earliest << " AND " << prediction.window.latest
         << " AND NOT EXISTS (SELECT 1 FROM holdfast_queue FORCE INDEX (PRIMARY) WHERE name IN " << list_of(names)
         << ")";
    return expect_count(1, rows);
}

/// Of fresh locks there are only the events that were written just now. One that has others was used, and has lost its
/// record.
Sql expect_no_history(const Writing& writing) {
    std::vector<LockName> names;
    std::uint64_t events = 0;
    for (const Change& change : writing.changes) {
        if (!writing.fresh.contains(change.name)) continue;
        names.push_back(change.name);
        events += change.events.size();
    }
    if (names.empty()) return {};
    return expect_count(events, Sql("FROM holdfast_audit FORCE INDEX (PRIMARY) WHERE name IN ") << list_of(names));
}

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
    if (!put.sql().empty()) sql << insert_locks << "VALUES " << put.sql() << replace_locks << replace_rest << "; ";
    if (!events.sql().empty()) sql << insert_events << "VALUES " << events.sql() << "; ";
    return sql;
}

std::vector<BoundStatement> bound_statements_for(const Writing& writing) {
    static const Sql add = Sql(insert_locks) << "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    static const Sql replace = Sql(add) << replace_locks << replace_rest;
    static const Sql add_event = Sql(insert_events) << "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    auto [added, put, events] = written<BoundRows>(writing);
    std::vector<BoundStatement> statements;
    if (added.count() != 0) statements.emplace_back(add, std::move(added));
    if (put.count() != 0) statements.emplace_back(replace, std::move(put));
    if (events.count() != 0) statements.emplace_back(add_event, std::move(events));
    return statements;
}

Sql statements_for(const Writing& writing, const Prediction& prediction) {
    return expect_locks(prediction.before)
           << statements_for(writing) << expect_rest(writing, prediction) << expect_no_history(writing);
}

std::vector<BoundStatement> bound_statements_for(const Writing& writing, const Prediction& prediction) {
    // Columns that take no NULL end a statement where something is not as predicted. What is asked for each row refers
    // to a column of that row; the server keeps the answer to anything else for all rows.
    static const Sql put =
        Sql("SET STATEMENT innodb_lock_wait_timeout = 0 FOR ")
        << insert_locks
        << "VALUES (?, ?, ?, ?, ?, ?, ?, ?, IF(? AND EXISTS (SELECT 1 FROM holdfast_audit a FORCE INDEX (PRIMARY) "
           "WHERE a.name = holdfast_locks.name), NULL, 0), ?, ?, ?) ON DUPLICATE KEY UPDATE "
           "seq = IF(seq = ? AND token = ? AND lock_id <=> ? AND session = 0 AND data = ?, VALUES(seq), NULL)"
        << replace_rest;
    static const Sql add_event =
        Sql(insert_events) << "VALUES (?, ?, ?, ?, IF(EXISTS (SELECT 1 FROM holdfast_meta WHERE " << is_store
                           << "store_id = ? AND IFNULL(?, " << now_of_server
                           << ") BETWEEN ? AND ?) AND NOT EXISTS (SELECT 1 FROM holdfast_queue q FORCE INDEX (PRIMARY) "
                              "WHERE q.name = holdfast_audit.name), ?, NULL), ?, ?, ?, ?, ?)";
    BoundStatement locks{.text = put};
    BoundStatement events{.text = add_event};
    for (std::size_t i = 0; i < writing.changes.size(); ++i) {
        const Change& change = writing.changes[i];
        const Record& before = prediction.before[i].record;
        const bool is_fresh = before.seq == 0;
        locks.rows.begin();
        // In the place of `session`, which such a lock does not have.
        put_lock(locks.rows, change, writing.now, is_fresh);
        // A lock that has no row is compared with NULL: no row is like that.
        number_or_null(locks.rows, is_fresh ? std::nullopt : std::optional(before.seq));
        locks.rows.number(before.token.value);
        if (before.held)
            locks.rows.value(before.held->lease.lock_id.text());
        else
            locks.rows.no_value();
        locks.rows.value(sealed(before, prediction.before[i].written_at));
        locks.rows.end();
        locks.expected_count += is_fresh ? 1 : 2;
        for (const AuditEvent& event : change.events) put_event(events.rows, event, &prediction);
        events.expected_count += change.events.size();
    }
    return {std::move(locks), std::move(events)};
}

Sql cut_events(std::span<const Change> changes) {
    Sql sql;
    for (const Change& change : changes) {
        // A new lock has no older events to remove.
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

Result<AuditEvent> read_event(const Row& row) {
    auto event = unsealed_event(row.bytes(3));
    if (!event) return event;
    if (event->name.text() != row.text(0) || std::cmp_not_equal(event->seq, row.number(1)) ||
        std::cmp_not_equal(event->token.value, row.number(2)))
        return fail(Errc::record_corrupt, "an event of the audit log cannot be read");
    return event;
}

}  // namespace holdfast::stores::mysql
