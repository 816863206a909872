#include "stores/mysql/read.hpp"

#include "kernel/step.hpp"
#include "stores/common/query.hpp"

#include <algorithm>
#include <limits>

namespace holdfast::stores::mysql {
namespace {

using Which = HistoryQuery::Which;

/// `select_lock`, and the number of its waiters.
Sql select_status(const Clock& clock) {
    return Sql(select_lock) << ", (SELECT COUNT(*) FROM holdfast_queue q WHERE q.name = l.name AND q.expires_at > "
                            << now_of(clock) << ") FROM holdfast_locks l";
}

Result<std::optional<kernel::Record>> record_in(const Row& row, const LockName& name, const Judging& judging) {
    auto found = read_lock(row, name, judging);
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    return std::move((*found)->value);
}

LockStatus status_in(const Row& row, const kernel::Record& record, Instant now) {
    return kernel::status_of(record, static_cast<std::uint64_t>(row.number(columns_of_lock)), now);
}

Sql limit_of(const std::optional<std::size_t>& limit) {
    if (!limit) return {};
    return Sql(" LIMIT ") << static_cast<std::int64_t>(std::min<std::size_t>(*limit, INT64_MAX));
}

}  // namespace

Sql inspect_query(const LockName& name, const Clock& clock) {
    // Read the history first: a lock that has one by then has a record, too.
    Sql sql("SELECT 1 FROM holdfast_audit WHERE name = ");
    sql.value(name.text()) << " LIMIT 1; " << select_status(clock) << " WHERE l.name = ";
    return sql.value(name.text());
}

Result<LockStatus> inspected(std::span<Answer> answers, const LockName& name, const Judging& judging) {
    const bool used = answers[0].count() != 0;
    const auto row = answers[1].next();
    if (!row && used) return std::unexpected(unreadable(name, "the record"));
    if (!row) return kernel::status_of(kernel::blank(name), 0, judging.now);
    const auto record = record_in(*row, name, judging);
    if (!record) return std::unexpected(record.error());
    return status_in(*row, *record ? **record : kernel::blank(name), judging.now);
}

Sql list_query(const ListQuery& query, const Clock& clock) {
    Sql sql = select_status(clock);
    sql << " WHERE (l.seq > 0 OR l.data IS NOT NULL)";
    if (!query.with_free) sql << " AND l.lock_id IS NOT NULL";
    if (query.changed_since) sql << " AND l.changed_at >= " << *query.changed_since;
    if (!query.prefix.empty()) (sql << " AND l.name >= ").value(query.prefix);
    if (!query.prefix.empty()) (sql << " AND l.name < ").value(end_of_prefix(query.prefix));
    if (!query.after.empty()) (sql << " AND l.name > ").value(query.after);
    return sql << " ORDER BY l.name" << limit_of(query.limit);
}

Result<std::vector<LockStatus>> listed(Answer& answer, const ListQuery& query, const Judging& judging) {
    std::vector<LockStatus> found;
    while (const auto row = answer.next()) {
        const auto name = LockName::parse(row->text(0));
        if (!name) return fail(Errc::record_corrupt, "the database holds a lock that no lock can be called");
        const auto record = record_in(*row, *name, judging);
        if (!record && query.with_unreadable) {
            found.push_back(kernel::unreadable_status(*name, judging.now));
            continue;
        }
        if (!record) return std::unexpected(record.error());
        if (!*record) continue;
        if (!query.with_free && !(*record)->held) continue;
        found.push_back(status_in(*row, **record, judging.now));
    }
    return found;
}

Sql history_query(const HistoryQuery& query) {
    const Sql::Text order = query.which == Which::newest ? Sql::Text(" DESC") : Sql::Text("");
    Sql sql("SELECT name, seq, token, data FROM holdfast_audit WHERE at >= ");
    sql << query.since.value_or(Instant{});
    if (query.name) {
        (sql << " AND name = ").value(query.name->text());
        constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        sql << " AND seq > " << std::min(query.after_seq, most) << " ORDER BY seq" << order;
    } else {
        sql << " ORDER BY at" << order << ", name" << order << ", seq" << order;
    }
    return sql << limit_of(query.limit);
}

Result<std::vector<AuditEvent>> events_in(Answer& answer, const HistoryQuery& query) {
    std::vector<AuditEvent> events;
    events.reserve(answer.count());
    while (const auto row = answer.next()) {
        auto event = read_event(*row);
        if (!event) return std::unexpected(event.error());
        events.push_back(std::move(*event));
    }
    if (query.which == Which::newest) std::ranges::reverse(events);
    return events;
}

}  // namespace holdfast::stores::mysql
