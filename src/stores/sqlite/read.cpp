#include "stores/sqlite/read.hpp"

#include "stores/common/query.hpp"
#include "stores/sqlite/codec.hpp"
#include "values/hex.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <string>

namespace holdfast::stores::sqlite {
namespace {

std::string select_history(std::string_view order) {
    return fmt::format(
        "SELECT {} FROM holdfast_audit WHERE name = ?1 AND seq > ?2 AND at >= ?3 ORDER BY seq {} LIMIT ?4",
        event_columns(), order);
}

/// Enough of an event's hash to tell it from another with the same number in another copy of the database.
std::string mark_of(std::span<const std::uint8_t> hash) {
    return to_hex(hash.first(std::min<std::size_t>(hash.size(), 8)));
}

/// Absent means no limit.
std::int64_t limit_of(std::optional<std::uint64_t> limit) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<std::int64_t>(std::min(limit.value_or(most), most));
}

/// In byte order, those whose records may have changed since then.
Result<std::vector<std::string>> names_since(Database& database, Instant since, const ListQuery& query) {
    Query rows(database, "SELECT newest_at, at, name FROM holdfast_audit ORDER BY id DESC");
    std::set<std::string, std::less<>> found;
    while (true) {
        const auto row = rows.step();
        if (!row) return std::unexpected(row.error());
        if (!*row || rows.number() < number_of(since)) break;
        const bool is_since = rows.number() >= number_of(since);
        const std::string_view name = rows.text();
        if (is_since && name.starts_with(query.prefix) && name > query.after && !found.contains(name))
            found.emplace(name);
    }
    return std::vector<std::string>(found.begin(), found.end());
}

/// In byte order.
Result<std::vector<std::string>> names(Database& database, const ListQuery& query) {
    if (query.changed_since) return names_since(database, *query.changed_since, query);
    // The names come from the smallest index that has them, and the records are read one by one afterwards, so that a
    // damaged index shows as an error and not as a missing lock.
    Query rows(database, query.with_free
                             ? "SELECT name FROM holdfast_locks WHERE name >= ?1 AND name > ?2 ORDER BY name LIMIT ?3"
                             : "SELECT name FROM holdfast_locks INDEXED BY holdfast_locks_held "
                               "WHERE name >= ?1 AND name > ?2 AND lock_id IS NOT NULL ORDER BY name LIMIT ?3");
    rows.bind(query.prefix).bind(query.after).bind(limit_of(query.limit));
    std::vector<std::string> found;
    while (true) {
        const auto row = rows.step();
        if (!row) return std::unexpected(row.error());
        if (!*row) return found;
        const std::string_view name = rows.text();
        if (!name.starts_with(query.prefix)) return found;
        found.emplace_back(name);
    }
}

Result<std::vector<AuditEvent>> history_of_one(Database& database, const HistoryQuery& query) {
    static const std::string from_newest = select_history("DESC");
    static const std::string from_oldest = select_history("ASC");
    const bool oldest = query.which == HistoryQuery::Which::oldest;
    Query rows(database, oldest ? from_oldest : from_newest);
    rows.bind(query.name->text()).bind(limit_of(query.after_seq));
    rows.bind(number_of(query.since.value_or(Instant::min()))).bind(limit_of(query.limit));
    std::vector<AuditEvent> events;
    while (true) {
        const auto row = rows.step();
        if (!row) return std::unexpected(row.error());
        if (!*row) break;
        auto event = read_event(rows);
        if (!event) return std::unexpected(event.error());
        events.push_back(std::move(*event));
    }
    if (!oldest) std::ranges::reverse(events);
    return events;
}

Result<std::vector<AuditEvent>> history_of_all(Database& database, const HistoryQuery& query) {
    static const std::string sql =
        fmt::format("SELECT newest_at, {} FROM holdfast_audit ORDER BY id DESC", event_columns());
    const std::size_t limit = query.limit.value_or(std::numeric_limits<std::size_t>::max());
    if (limit == 0) return {};
    Query rows(database, sql);
    std::vector<AuditEvent> events;
    // The times of the newest `limit` events that were read. Times fall from row to row, unless the clock was put back.
    std::priority_queue<Instant, std::vector<Instant>, std::greater<>> newest;
    const bool from_newest = query.which == HistoryQuery::Which::newest;
    Instant oldest = query.since.value_or(Instant::min());
    while (true) {
        const auto row = rows.step();
        if (!row) return std::unexpected(row.error());
        // All that were written before are older still.
        if (!*row || rows.number() < number_of(oldest)) break;
        auto event = read_event(rows);
        if (!event) return std::unexpected(event.error());
        if (event->at < oldest) continue;
        if (from_newest) newest.push(event->at);
        if (newest.size() > limit) newest.pop();
        if (newest.size() == limit) oldest = std::max(oldest, newest.top());
        events.push_back(std::move(*event));
    }
    sort_by_time(events);
    cut_to_limit(events, query);
    return events;
}

/// The row after which to go on. All rows are new if the database was made anew or restored from an older copy.
Result<NumberedCursor> row_before(Database& database, const EventCursor& after, const StoreId& store_id) {
    auto cursor = NumberedCursor::read(after, event_cursor_form, store_id);
    if (!cursor || cursor->number == 0) return cursor;
    Query rows(database, "SELECT id, hash FROM holdfast_audit WHERE id >= ? ORDER BY id LIMIT 1");
    const auto row = rows.bind(cursor->number).step();
    if (!row) return std::unexpected(row.error());
    // The row itself can have been pruned, but the newest row never is.
    const bool is_there = *row && (rows.number() != cursor->number || mark_of(rows.blob()) == cursor->mark);
    return is_there ? *cursor : NumberedCursor{};
}

/// Empty if the query does not ask for it.
Result<std::optional<LockStatus>> status_of(Tables& tables, const LockName& name, const ListQuery& query,
                                            const Moment& moment) {
    const auto stored = tables.find(name, moment);
    if (!stored) return std::unexpected(stored.error());
    if (!*stored) return std::unexpected(unreadable(name.text(), "the record"));
    const kernel::Record& record = (*stored)->record;
    if (!is_selected(query, record)) return std::nullopt;
    const auto waiting = tables.queue(name, std::nullopt, moment);
    if (!waiting) return std::unexpected(waiting.error());
    return kernel::status_of(record, waiting->queue.waiters, moment.now);
}

}  // namespace

Result<std::vector<LockStatus>> read_list(Database& database, const Bonds& bonds, const ListQuery& query,
                                          const Moment& moment) {
    const auto all = names(database, query);
    if (!all) return std::unexpected(all.error());
    Tables tables(database, bonds);
    std::vector<LockStatus> found;
    found.reserve(all->size());
    for (const std::string& text : *all) {
        if (query.limit && found.size() == *query.limit) break;
        const auto name = LockName::parse(text);
        if (!name) return std::unexpected(unreadable(text, "the record"));
        auto status = status_of(tables, *name, query, moment);
        // A row that cannot be read is one lock; damage that SQLite itself finds is none.
        const bool is_damaged = !status && status.error().code == Errc::record_corrupt && !database.damaged();
        if (is_damaged && query.with_unreadable) status = kernel::unreadable_status(*name, moment.now);
        if (!status) return std::unexpected(status.error());
        if (*status) found.push_back(std::move(**status));
    }
    return found;
}

Result<std::vector<AuditEvent>> read_history(Database& database, const HistoryQuery& query) {
    return query.name ? history_of_one(database, query) : history_of_all(database, query);
}

Result<EventPage> read_events(Database& database, const EventCursor& after, std::size_t limit,
                              const StoreId& store_id) {
    auto last = row_before(database, after, store_id);
    if (!last) return std::unexpected(last.error());
    static const std::string sql =
        fmt::format("SELECT id, {} FROM holdfast_audit WHERE id > ? ORDER BY id LIMIT ?", event_columns());
    const std::size_t most = std::max<std::size_t>(limit, 1);
    Query rows(database, sql);
    rows.bind(last->number).bind(limit_of(most));
    EventPage page;
    while (true) {
        const auto row = rows.step();
        if (!row) return std::unexpected(row.error());
        if (!*row) break;
        const std::int64_t id = rows.number();
        auto event = read_event(rows);
        if (!event) return std::unexpected(event.error());
        last = NumberedCursor{id, mark_of(event->hash)};
        page.events.push_back(std::move(*event));
    }
    page.is_last = page.events.size() < most;
    page.next = last->text(event_cursor_form, store_id);
    return page;
}

Result<EventCursor> read_end_of_events(Database& database, const StoreId& store_id) {
    Query rows(database, "SELECT id, hash FROM holdfast_audit ORDER BY id DESC LIMIT 1");
    const auto row = rows.step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return NumberedCursor{}.text(event_cursor_form, store_id);
    const std::int64_t id = rows.number();
    return NumberedCursor{id, mark_of(rows.blob())}.text(event_cursor_form, store_id);
}

}  // namespace holdfast::stores::sqlite
