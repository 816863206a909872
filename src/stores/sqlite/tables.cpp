#include "stores/sqlite/tables.hpp"

#include "stores/sqlite/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <ranges>
#include <set>
#include <string>
#include <tuple>

namespace holdfast::stores::sqlite {
namespace {

using kernel::Record;
using kernel::Ticket;

/// `VALUES` for as many columns as `columns` names.
std::string placeholders(const std::string& columns) {
    const auto commas = std::ranges::count(columns, ',');
    std::string list = "?";
    for (std::ptrdiff_t i = 0; i < commas; ++i) list += ", ?";
    return list;
}

std::string insert_into(std::string_view verb, std::string_view table, const std::string& columns) {
    return fmt::format("{} INTO {} ({}) VALUES ({})", verb, table, columns, placeholders(columns));
}

/// Changes every column but the name, which is the first parameter and says of which lock. A key that is
/// assigned, even unchanged, would make SQLite move the row and all its index entries. What never falls does not.
std::string update_lock() {
    std::string sql = "UPDATE OR ROLLBACK holdfast_locks SET ";
    int parameter = 1;
    for (const auto part : lock_columns() | std::views::split(std::string_view(", ")) | std::views::drop(1)) {
        if (++parameter > 2) sql += ", ";
        sql += fmt::format("{} = ?{}", std::string_view(part.begin(), part.end()), parameter);
    }
    return sql + " WHERE name = ?1 AND token <= ?3 AND seq <= ?9";
}

std::string select_history(std::string_view order) {
    return fmt::format(
        "SELECT {} FROM holdfast_audit WHERE name = ?1 AND seq > ?2 AND at >= ?3 ORDER BY seq {} LIMIT ?4",
        event_columns(), order);
}

/// Absent means no limit.
std::int64_t limit_of(std::optional<std::uint64_t> limit) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<std::int64_t>(std::min(limit.value_or(most), most));
}

// Writes say OR ROLLBACK: any failure gives up the whole transaction anyway, and being able to undo one
// statement alone would make SQLite keep a journal of it in memory.

/// The tickets of a lock in order, answered from the index alone: their other columns are read for few of them.
constexpr std::string_view line_sql =
    "SELECT expires_at, boot_id, clock_offset_ms, number, lock_id FROM holdfast_queue "
    "INDEXED BY holdfast_queue_order WHERE name = ? ORDER BY number";

/// Whether a deadline means the same now although it was written when the clocks were `apart` from how they are.
bool is_same_time(const Moment& moment, std::chrono::milliseconds apart) {
    Ticket ticket;
    ticket.expires_at = moment.now;
    const kernel::ClockMark then{moment.mark.boot_id, moment.mark.offset + apart};
    return kernel::rebase(ticket, then, moment.mark, moment.now).expires_at == moment.now;
}

/// Whether a ticket lives, from the columns of the index alone.
bool is_live(Query& row, const Moment& moment) {
    const Instant expires_at{std::chrono::milliseconds{row.number()}};
    const std::string_view boot_id = row.text();
    const std::chrono::milliseconds offset{row.number()};
    if (offset == moment.mark.offset && boot_id == moment.mark.boot_id) return expires_at > moment.now;
    Ticket ticket;
    ticket.expires_at = expires_at;
    return kernel::rebase(ticket, {std::string(boot_id), offset}, moment.mark, moment.now).expires_at > moment.now;
}

}  // namespace

Result<std::optional<Found>> Tables::find(const LockName& name, const Moment& moment) {
    static const std::string sql = fmt::format("SELECT {} FROM holdfast_locks WHERE name = ?", lock_columns());
    Query query(database_, sql);
    const auto row = query.bind(name.text()).step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return std::nullopt;
    auto stored = read_record(query);
    if (!stored) return std::unexpected(stored.error());
    // An index that was damaged can lead to the row of another lock.
    if (stored->value.name != name) return std::unexpected(unreadable(name.text(), "the record"));
    return Found{kernel::rebase(std::move(stored->value), stored->mark, moment.mark, moment.now),
                 stored->mark.boot_id != moment.mark.boot_id};
}

Result<Found> Tables::record(const LockName& name, const Moment& moment) {
    auto found = find(name, moment);
    if (!found) return std::unexpected(found.error());
    if (*found) return std::move(**found);
    // A record that cannot be found although the lock has a history was lost or damaged in its key. Taking
    // the lock for free would let a second holder in.
    Query history(database_, "SELECT 1 FROM holdfast_audit WHERE name = ? LIMIT 1");
    const auto used = history.bind(name.text()).step();
    if (!used) return std::unexpected(used.error());
    if (*used) return std::unexpected(unreadable(name.text(), "the record"));
    return Found{kernel::blank(name)};
}

Result<std::optional<Ticket>> Tables::ticket(const LockName& name, std::string_view lock_id, const Moment& moment) {
    static const std::string sql =
        fmt::format("SELECT {} FROM holdfast_queue WHERE name = ? AND lock_id = ?", ticket_columns());
    Query query(database_, sql);
    const auto row = query.bind(name.text()).bind(lock_id).step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return std::nullopt;
    auto stored = read_ticket(query);
    if (!stored) return std::unexpected(stored.error());
    return kernel::rebase(std::move(stored->value), stored->mark, moment.mark, moment.now);
}

Result<QueueView> Tables::queue(const LockName& name, std::optional<LockId> own, const Moment& moment) {
    QueueView view;
    if (auto counted = count(name, moment, view.queue); !counted) return std::unexpected(counted.error());
    if (view.queue.last_number == 0) return view;
    if (own) {
        auto mine = ticket(name, own->text(), moment);
        if (!mine) return std::unexpected(mine.error());
        view.queue.own = std::move(*mine);
    }
    Query query(database_, line_sql);
    query.bind(name.text());
    while (!view.queue.head) {
        const auto row = query.step();
        if (!row) return std::unexpected(row.error());
        if (!*row) return view;
        const bool live = is_live(query, moment);
        const auto number = static_cast<std::uint64_t>(query.number());
        // The head, and the dead ones before it, which are about to be removed.
        auto found = ticket(name, query.text(), moment);
        if (!found) return std::unexpected(found.error());
        if (!query.intact() || !*found || (*found)->number != number || ((*found)->expires_at > moment.now) != live)
            return std::unexpected(unreadable(name.text(), "a place in the queue"));
        if (live)
            view.queue.head = std::move(**found);
        else if ((*found)->lock_id != own)
            view.dead.push_back((*found)->lock_id);
    }
    return view;
}

/// Left to SQLite where nothing is special: it counts a long queue several times as fast as we would.
Result<void> Tables::count(const LockName& name, const Moment& moment, kernel::Queue& queue) {
    // Nearly always nobody waits, and that is found out in half the time.
    Query any_at_all(database_, "SELECT 1 FROM holdfast_queue INDEXED BY holdfast_queue_order WHERE name = ? LIMIT 1");
    const auto somebody = any_at_all.bind(name.text()).step();
    if (!somebody) return std::unexpected(somebody.error());
    if (!*somebody) return {};
    Query all(database_,
              "SELECT ifnull(max(number), 0), count(*) FROM holdfast_queue INDEXED BY holdfast_queue_order "
              "WHERE name = ?");
    if (const auto row = all.bind(name.text()).step(); !row) return std::unexpected(row.error());
    queue.last_number = static_cast<std::uint64_t>(all.number());
    queue.waiters = static_cast<std::uint64_t>(all.number());

    // Some are dead, or have deadlines that were written when the clocks stood otherwise: each has to be judged.
    constexpr std::chrono::milliseconds near{50};
    Query special(database_,
                  "SELECT 1 FROM holdfast_queue INDEXED BY holdfast_queue_order WHERE name = ?1 AND "
                  "(expires_at <= ?2 OR clock_offset_ms NOT BETWEEN ?3 AND ?4 OR boot_id <> ?5) LIMIT 1");
    const auto any = special.bind(name.text())
                         .bind(moment.now.time_since_epoch().count())
                         .bind((moment.mark.offset - near).count())
                         .bind((moment.mark.offset + near).count())
                         .bind(moment.mark.boot_id)
                         .step();
    if (!any) return std::unexpected(any.error());
    if (!*any && is_same_time(moment, -near) && is_same_time(moment, near)) return {};
    Query each(database_, line_sql);
    each.bind(name.text());
    queue.waiters = 0;
    while (true) {
        const auto next = each.step();
        if (!next) return std::unexpected(next.error());
        if (!*next) return {};
        if (is_live(each, moment)) ++queue.waiters;
    }
}

Result<std::optional<LockId>> Tables::first_in_line(const LockName& name, const Moment& moment) {
    Query query(database_, line_sql);
    query.bind(name.text());
    while (true) {
        const auto row = query.step();
        if (!row) return std::unexpected(row.error());
        if (!*row) return std::nullopt;
        if (!is_live(query, moment)) continue;
        query.skip();
        const auto first = LockId::parse(query.text());
        if (!first || !query.intact()) return std::unexpected(unreadable(name.text(), "a place in the queue"));
        return *first;
    }
}

Result<base::Standing> Tables::standing(const LockName& name, const LockId& own, const Moment& moment) {
    const auto mine = ticket(name, own.text(), moment);
    if (!mine) return std::unexpected(mine.error());
    if (!*mine || (*mine)->expires_at <= moment.now) return base::Standing::absent;
    const auto first = first_in_line(name, moment);
    if (!first) return std::unexpected(first.error());
    return *first == own ? base::Standing::first : base::Standing::behind;
}

Result<std::uint64_t> Tables::seq(const LockName& name) {
    Query query(database_, "SELECT seq FROM holdfast_locks WHERE name = ?");
    const auto row = query.bind(name.text()).step();
    if (!row) return std::unexpected(row.error());
    return *row ? static_cast<std::uint64_t>(query.number()) : 0;
}

Result<void> Tables::put_record(const Record& record, bool is_new, const Moment& moment) {
    static const std::string insert = insert_into("INSERT OR ROLLBACK", "holdfast_locks", lock_columns());
    static const std::string update = update_lock();
    Query query(database_, is_new ? insert : update);
    bind_record(query, record, moment.mark);
    if (auto put = query.run(); !put) return put;
    if (database_.changed_rows() != 1) return std::unexpected(unreadable(record.name.text(), "the record"));
    return {};
}

Result<void> Tables::put_ticket(const LockName& name, const Ticket& ticket, const Moment& moment) {
    static const std::string sql = insert_into("INSERT OR REPLACE", "holdfast_queue", ticket_columns());
    Query query(database_, sql);
    bind_ticket(query, name, ticket, moment.mark);
    return query.run();
}

Result<void> Tables::drop_ticket(const LockName& name, const LockId& lock_id) {
    Query query(database_, "DELETE FROM holdfast_queue WHERE name = ? AND lock_id = ?");
    return query.bind(name.text()).bind(lock_id.text()).run();
}

Result<void> Tables::add_event(const AuditEvent& event) {
    // In a query of its own: as a part of the other one it costs more to compile than both. So does a list of columns.
    Query last(database_, "SELECT newest_at FROM holdfast_audit ORDER BY id DESC LIMIT 1");
    const auto row = last.step();
    if (!row) return std::unexpected(row.error());
    const std::int64_t at = event.at.time_since_epoch().count();
    const std::int64_t newest_at = *row ? std::max(at, last.number()) : at;
    static const std::string sql =
        fmt::format("INSERT OR ROLLBACK INTO holdfast_audit VALUES (NULL, {}, ?)", placeholders(event_columns()));
    Query query(database_, sql);
    bind_event(query, event);
    return query.bind(newest_at).run();
}

Result<void> Tables::prune(const LockName& name, std::uint64_t after, std::uint64_t through) {
    Query query(database_, "DELETE FROM holdfast_audit WHERE name = ? AND seq > ? AND seq <= ?");
    query.bind(name.text()).bind(static_cast<std::int64_t>(after)).bind(static_cast<std::int64_t>(through));
    return query.run();
}

Result<std::vector<std::string>> Tables::names(const ListQuery& query) {
    if (query.changed_since) return names_since(*query.changed_since, query);
    // Names come from the smallest index that knows them, and the records one by one afterwards: whatever an index
    // leads to, a held lock must not be missing.
    Query rows(database_, query.with_free
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

Result<std::vector<std::string>> Tables::names_since(Instant since, const ListQuery& query) {
    Query rows(database_, "SELECT newest_at, at, name FROM holdfast_audit ORDER BY id DESC");
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

Result<std::vector<LockStatus>> Tables::list(const ListQuery& query, const Moment& moment) {
    const auto all = names(query);
    if (!all) return std::unexpected(all.error());
    std::vector<LockStatus> found;
    found.reserve(all->size());
    for (const std::string& text : *all) {
        if (query.limit && found.size() == *query.limit) break;
        const auto name = LockName::parse(text);
        if (!name) return std::unexpected(unreadable(text, "the record"));
        const auto stored = find(*name, moment);
        if (!stored) return std::unexpected(stored.error());
        if (!*stored) return std::unexpected(unreadable(text, "the record"));
        const Record& record = (*stored)->record;
        if (!query.with_free && !record.held) continue;
        if (query.changed_since && record.changed_at < *query.changed_since) continue;
        const auto waiting = queue(*name, std::nullopt, moment);
        if (!waiting) return std::unexpected(waiting.error());
        found.push_back(kernel::status_of(record, waiting->queue.waiters, moment.now));
    }
    return found;
}

Result<std::vector<AuditEvent>> Tables::history(const HistoryQuery& query) {
    return query.name ? history_of_one(query) : history_of_all(query);
}

Result<std::vector<AuditEvent>> Tables::history_of_one(const HistoryQuery& query) {
    static const std::string from_newest = select_history("DESC");
    static const std::string from_oldest = select_history("ASC");
    const bool oldest = query.which == HistoryQuery::Which::oldest;
    Query rows(database_, oldest ? from_oldest : from_newest);
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

Result<std::vector<AuditEvent>> Tables::history_of_all(const HistoryQuery& query) {
    static const std::string sql =
        fmt::format("SELECT newest_at, {} FROM holdfast_audit ORDER BY id DESC", event_columns());
    const std::size_t limit = query.limit.value_or(std::numeric_limits<std::size_t>::max());
    if (limit == 0) return {};
    Query rows(database_, sql);
    std::vector<AuditEvent> events;
    // The times of the newest so many that were read. They fall from row to row, unless the clock was put back.
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
    std::ranges::sort(events, {}, [](const AuditEvent& e) { return std::tie(e.at, e.name, e.seq); });
    if (events.size() <= limit) return events;
    const auto cut = from_newest ? events.end() - static_cast<std::ptrdiff_t>(limit)
                                 : events.begin() + static_cast<std::ptrdiff_t>(limit);
    if (from_newest)
        events.erase(events.begin(), cut);
    else
        events.erase(cut, events.end());
    return events;
}

}  // namespace holdfast::stores::sqlite
