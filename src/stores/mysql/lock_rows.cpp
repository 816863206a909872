#include "stores/mysql/lock_rows.hpp"

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

void put_lease(Sql& sql, const std::optional<kernel::HeldLease>& held) {
    if (!held) {
        sql << "NULL, NULL, NULL, NULL, NULL, NULL, ";
        return;
    }
    const Lease& lease = held->lease;
    sql.value(lease.lock_id.text()) << ", ";
    sql.value(lease.holder.text) << ", ";
    sql.value(lease.operation) << ", ";
    sql.value(lease.reason) << ", " << lease.acquired_at << ", " << lease.expires_at << ", ";
}

constexpr Sql::Text insert_locks =
    "INSERT INTO holdfast_locks (name, token, lock_id, holder, operation, reason, acquired_at, expires_at, session, "
    "seq, "
    "changed_at, data) VALUES ";

/// A lock that has tickets and was never granted has a row, too: that is where all meet who ask for it. `session` is
/// what stands in the column of that name.
void put_lock(Sql& sql, const Change& change, Instant now, const Sql& session) {
    sql << "(";
    sql.value(change.name.text()) << ", ";
    if (!change.record) {
        sql << "0, NULL, NULL, NULL, NULL, NULL, NULL, " << session << ", 0, 0, NULL)";
        return;
    }
    const Record& record = *change.record;
    sql << record.token.value << ", ";
    put_lease(sql, record.held);
    sql << session << ", " << record.seq << ", " << record.changed_at << ", ";
    sql.value(sealed(record, now)) << ")";
}

Sql session_of(const Change& change, const std::set<LockName>& sessions) {
    return Sql() << std::int64_t{sessions.contains(change.name)};
}

/// `value`; but NULL, which the column refuses, if one of the locks has a history. A lock that was used and has lost
/// its record must not be taken for a new one.
Sql unless_used(std::span<const LockName> names, const Sql& value) {
    return Sql("IF(EXISTS (SELECT 1 FROM holdfast_audit FORCE INDEX (PRIMARY) WHERE name IN ")
           << list_of(names) << "), NULL, " << value << ")";
}

void put_event(Sql& sql, const AuditEvent& event) {
    sql << "(";
    sql.value(event.name.text()) << ", " << event.seq << ", " << event.at << ", ";
    sql.value(name_of(event.kind)) << ", " << event.token.value << ", ";
    sql.value(event.lock_id.text()) << ", ";
    sql.value(event.holder.text) << ", ";
    sql.value(event.actor) << ", ";
    sql.value(event.reason) << ", ";
    sql.value(sealed(event)) << ")";
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

Sql list_of(std::span<const LockName> names) {
    Sql sql("(");
    Comma comma;
    for (const LockName& name : names) (sql << comma.next()).value(name.text());
    return sql << ")";
}

Sql add_locks(std::span<const Change> changes, Instant now, const std::set<LockName>& sessions,
              const std::set<LockName>& fresh) {
    std::vector<LockName> names;
    for (const Change& change : changes)
        if (fresh.contains(change.name)) names.push_back(change.name);
    if (names.empty()) return {};
    Sql sql(insert_locks);
    Comma comma;
    for (const Change& change : changes) {
        if (!fresh.contains(change.name)) continue;
        const Sql session = session_of(change, sessions);
        // Once is enough: the statement fails as a whole.
        const bool is_first = change.name == names.front();
        put_lock(sql << comma.next(), change, now, is_first ? unless_used(names, session) : session);
    }
    return sql << "; ";
}

Sql put_locks(std::span<const Change> changes, Instant now, const std::set<LockName>& sessions,
              const std::set<LockName>& fresh) {
    Sql rows;
    Comma comma;
    for (const Change& change : changes)
        if (change.record && !fresh.contains(change.name))
            put_lock(rows << comma.next(), change, now, session_of(change, sessions));
    if (rows.empty()) return rows;
    return Sql(insert_locks)
           << rows
           << " ON DUPLICATE KEY UPDATE token = VALUES(token), lock_id = VALUES(lock_id), holder = VALUES(holder), "
              "operation = VALUES(operation), reason = VALUES(reason), acquired_at = VALUES(acquired_at), "
              "expires_at = VALUES(expires_at), session = VALUES(session), seq = VALUES(seq), changed_at = "
              "VALUES(changed_at), "
              "data = VALUES(data); ";
}

Sql put_events(std::span<const Change> changes) {
    Sql rows;
    Comma comma;
    for (const Change& change : changes)
        for (const AuditEvent& event : change.events) put_event(rows << comma.next(), event);
    if (rows.empty()) return rows;
    return Sql("INSERT INTO holdfast_audit (name, seq, at, event, token, lock_id, holder, actor, reason, data) VALUES ")
           << rows << "; ";
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
