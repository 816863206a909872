#include "stores/mysql/expect.hpp"

#include "stores/mysql/schema.hpp"

namespace holdfast::stores::mysql {
namespace {

/// ~0 is the greatest number that there is. What is counted keeps the sum from being computed before it is needed.
constexpr Sql::Text or_fail = ", 0, ~0 + (COUNT(*) + 1)) FROM ";

Sql is_exactly(const KnownLock& lock) {
    const kernel::Record& record = lock.record;
    Sql sql("(name = ");
    sql.value(record.name.text()) << " AND seq = " << record.seq << " AND token = " << record.token.value
                                  << " AND session = 0 AND lock_id ";
    if (record.held)
        (sql << "= ").value(record.held->lease.lock_id.text());
    else
        sql << "IS NULL";
    return (sql << " AND data = ").value(sealed(record, lock.written_at)) << ")";
}

Sql no_queue(const Writing& writing) {
    std::vector<LockName> names;
    for (const Change& change : writing.changes) names.push_back(change.name);
    return Sql(" AND NOT EXISTS (SELECT 1 FROM holdfast_queue FORCE INDEX (PRIMARY) WHERE name IN ")
           << list_of(names) << ")";
}

Sql no_history(const Writing& writing) {
    std::vector<LockName> fresh;
    std::uint64_t events = 0;
    for (const Change& change : writing.changes) {
        if (!writing.fresh.contains(change.name)) continue;
        fresh.push_back(change.name);
        events += change.events.size();
    }
    if (fresh.empty()) return {};
    return Sql(" AND (SELECT COUNT(*) FROM holdfast_audit FORCE INDEX (PRIMARY) WHERE name IN ")
           << list_of(fresh) << ") = " << events;
}

}  // namespace

Sql expect_locks(std::span<const KnownLock> locks) {
    std::int64_t count = 0;
    Sql rows;
    for (const KnownLock& lock : locks) {
        if (lock.record.seq == 0) continue;
        if (count++ != 0) rows << " OR ";
        rows << is_exactly(lock);
    }
    if (count == 0) return {};
    return Sql("SELECT IF(COUNT(*) = ") << count << or_fail << "holdfast_locks FORCE INDEX (PRIMARY) WHERE " << rows
                                        << " FOR UPDATE NOWAIT; ";
}

Sql expect_rest(const Writing& writing, const Expected& expected) {
    Sql sql("SELECT IF(COUNT(*) = 1");
    sql << or_fail << "holdfast_meta WHERE " << is_store << "store_id = ";
    sql.value(expected.store_id.text()) << " AND ";
    if (expected.judged)
        sql << *expected.judged;
    else
        sql << now_of_server;
    return sql << " BETWEEN " << expected.window.earliest << " AND " << expected.window.latest << no_queue(writing)
               << no_history(writing) << "; ";
}

}  // namespace holdfast::stores::mysql
