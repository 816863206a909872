#include "stores/mysql/codec.hpp"

#include "kernel/step.hpp"
#include "stores/mysql/schema.hpp"

#include <utility>

namespace holdfast::stores::mysql {
namespace {

using kernel::Record;

/// The columns are what people, fences and waiters go by, so they must say what the value says.
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

/// A lock that has tickets and was never granted has a row, too: that is where all meet who ask for it.
template <class Rows>
void put_lock(Rows& rows, const Change& change, const Writing& writing, bool mark) {
    const Record& record = change.record ? *change.record : kernel::blank(change.name);
    rows.value(change.name.text());
    rows.number(record.token.value);
    put_lease(rows, record.held);
    rows.number(std::int64_t{mark});
    rows.number(record.seq);
    rows.number(record.changed_at);
    if (change.record)
        rows.value(sealed(record, writing.now));
    else
        rows.no_value();
}

/// What is in the row of a lock until it is replaced. A lock that was never used has none.
void put_expected(BoundRows& rows, const KnownLock& lock) {
    const Record& record = lock.record;
    const bool is_new = record.seq == 0;
    rows.number(is_new ? std::int64_t{-1} : static_cast<std::int64_t>(record.seq));
    rows.number(record.token.value);
    if (record.held)
        rows.value(record.held->lease.lock_id.text());
    else
        rows.no_value();
    rows.value(is_new ? base::Bytes() : sealed(record, lock.written_at));
}

template <class Rows>
void put_expected(Rows& rows, const Expected& expected) {
    rows.value(expected.store_id.text());
    if (expected.judged)
        rows.number(*expected.judged);
    else
        rows.no_number();
    rows.number(expected.window.earliest);
    rows.number(expected.window.latest);
}

template <class Rows>
void put_event(Rows& rows, const AuditEvent& event, const Expected* expected = nullptr) {
    rows.begin();
    rows.value(event.name.text());
    rows.number(event.seq);
    rows.number(event.at);
    rows.value(name_of(event.kind));
    if (expected != nullptr) put_expected(rows, *expected);
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
            put_lock(rows, change, writing, change.record && writing.sessions.contains(change.name));
            rows.end();
        }
        for (const AuditEvent& event : change.events) put_event(all.events, event);
    }
    return all;
}

constexpr Sql::Text insert_locks =
    "INSERT INTO holdfast_locks (name, token, lock_id, holder, operation, reason, acquired_at, expires_at, session, "
    "seq, changed_at, data) VALUES ";
/// What follows the token.
constexpr Sql::Text replace_rest =
    ", lock_id = VALUES(lock_id), holder = VALUES(holder), "
    "operation = VALUES(operation), reason = VALUES(reason), acquired_at = VALUES(acquired_at), "
    "expires_at = VALUES(expires_at), session = VALUES(session), seq = VALUES(seq), "
    "changed_at = VALUES(changed_at), data = VALUES(data)";
constexpr Sql::Text replace_locks = " ON DUPLICATE KEY UPDATE token = VALUES(token)";
/// Columns are replaced from left to right, so this sees the row as it was. ~0 is the greatest number that there is.
constexpr Sql::Text replace_locks_if =
    " ON DUPLICATE KEY UPDATE token = IF(seq = ? AND token = ? AND lock_id <=> ? AND session = 0 AND data = ?, "
    "VALUES(token), ~0 + (seq + 1))";
constexpr Sql::Text insert_events =
    "INSERT INTO holdfast_audit (name, seq, at, event, token, lock_id, holder, actor, reason, data) VALUES ";

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

Sql list_of(std::span<const LockName> names) {
    Sql sql("(");
    Comma comma;
    for (const LockName& name : names) (sql << comma.next()).value(name.text());
    return sql << ")";
}

Sql statements_for(const Writing& writing) {
    const auto [added, put, events] = written<TextRows>(writing);
    Sql sql;
    if (!added.sql().empty()) sql << insert_locks << added.sql() << "; ";
    if (!put.sql().empty()) sql << insert_locks << put.sql() << replace_locks << replace_rest << "; ";
    if (!events.sql().empty()) sql << insert_events << events.sql() << "; ";
    return sql;
}

std::vector<BoundStatement> bound_statements_for(const Writing& writing) {
    static const Sql add = Sql(insert_locks) << "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    static const Sql replace = Sql(add) << replace_locks << replace_rest;
    static const Sql add_event = Sql(insert_events) << "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    auto [added, put, events] = written<BoundRows>(writing);
    std::vector<BoundStatement> statements;
    if (added.count() != 0) statements.emplace_back(add, std::move(added));
    if (put.count() != 0) statements.emplace_back(replace, std::move(put));
    if (events.count() != 0) statements.emplace_back(add_event, std::move(events));
    return statements;
}

std::vector<BoundStatement> bound_statements_for(const Writing& writing, std::span<const KnownLock> before,
                                                 const Expected& expected) {
    // What is asked for each row hangs on a column of that row: the answer to anything else would be kept for the next.
    // What has to be so when all rows are locked is for the next statement to ask.
    static const Sql replace =
        Sql("SET STATEMENT innodb_lock_wait_timeout = 0 FOR ")
        << insert_locks
        << "(?, ?, ?, ?, ?, ?, ?, ?, IF(? AND EXISTS (SELECT 1 FROM holdfast_audit a FORCE INDEX "
           "(PRIMARY) WHERE a.name = holdfast_locks.name), ~0 + (token + 1), 0), ?, ?, ?)"
        << replace_locks_if << replace_rest;
    static const Sql add_events =
        Sql(insert_events)
        << "(?, ?, ?, ?, IF(NOT EXISTS (SELECT 1 FROM holdfast_meta WHERE " << is_store << "store_id = ? AND IFNULL(?, "
        << now_of_server
        << ") BETWEEN ? AND ?) OR EXISTS (SELECT 1 FROM holdfast_queue q FORCE INDEX (PRIMARY) WHERE "
           "q.name = holdfast_audit.name), ~0 + (seq + 1), ?), ?, ?, ?, ?, ?)";
    BoundRows rows;
    BoundRows events;
    for (std::size_t i = 0; i < before.size(); ++i) {
        const Change& change = writing.changes[i];
        rows.begin();
        put_lock(rows, change, writing, before[i].record.seq == 0);
        put_expected(rows, before[i]);
        rows.end();
        for (const AuditEvent& event : change.events) put_event(events, event, &expected);
    }
    std::vector<BoundStatement> statements;
    statements.emplace_back(replace, std::move(rows));
    statements.emplace_back(add_events, std::move(events));
    return statements;
}

Sql cut_events(std::span<const Change> changes) {
    Sql sql;
    for (const Change& change : changes) {
        // A new lock has no older events. If there are any all the same, `expect_no_history` is to find them.
        if (!change.cut || change.is_new) continue;
        // It must not touch events that others are writing, or it waits for them. The hint, which only this form of
        // DELETE takes, rules out a scan of the table; and the event at which the range ends is this lock's own, since
        // one always stays.
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
    // ~0 is the greatest number that there is, so nothing can be added to it. A statement that ends in an error is the
    // only one that keeps those behind it from being run.
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
