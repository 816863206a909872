#include "stores/sqlite/tables.hpp"

#include "stores/sqlite/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string>

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

/// Changes every column but the name, which is the first parameter: assigning the key, even unchanged, would make
/// SQLite move the row and all its index entries. Changes no row whose token or seq is higher.
std::string update_lock() {
    std::string sql = "UPDATE OR ROLLBACK holdfast_locks SET ";
    int parameter = 1;
    for (const auto part : lock_columns() | std::views::split(std::string_view(", ")) | std::views::drop(1)) {
        if (++parameter > 2) sql += ", ";
        sql += fmt::format("{} = ?{}", std::string_view(part.begin(), part.end()), parameter);
    }
    return sql + " WHERE name = ?1 AND token <= ?3 AND seq <= ?9";
}

// Writes say OR ROLLBACK: any failure gives up the whole transaction anyway, and being able to undo one
// statement alone would make SQLite keep a journal of it in memory.

/// The tickets of a lock in order, read from the index alone, because the other columns are needed for few of them.
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
        // The head, and the expired tickets before it, which are about to be removed.
        auto found = ticket(name, query.text(), moment);
        if (!found) return std::unexpected(found.error());
        if (!query.intact() || !*found || (*found)->number != number || ((*found)->expires_at > moment.now) != live)
            return std::unexpected(unreadable(name.text(), "a place in the queue"));
        const LockId& lock_id = (*found)->lock_id;
        // The requester is alive.
        const bool is_own = lock_id == own;
        const bool is_abandoned = live && !is_own && bonds_.is_abandoned(lock_id);
        if (is_abandoned) --view.queue.waiters;
        if (live && !is_abandoned)
            view.queue.head = std::move(**found);
        else if (!is_own)
            view.dead.push_back(lock_id);
    }
    return view;
}

/// SQLite counts where it can: it is several times as fast as we are.
Result<void> Tables::count(const LockName& name, const Moment& moment, kernel::Queue& queue) {
    // Nearly always nobody waits, and this query takes half the time.
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

    // Some have expired, or have deadlines that were written before the clocks were moved: each has to be checked.
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
        if (!bonds_.is_abandoned(*first)) return *first;
    }
}

Result<std::optional<Instant>> Tables::end_of_ticket(const LockName& name, const LockId& lock_id,
                                                     const Moment& moment) {
    const auto found = ticket(name, lock_id.text(), moment);
    if (!found) return std::unexpected(found.error());
    return *found ? std::optional((*found)->expires_at) : std::nullopt;
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
    // A query of its own: as a part of the INSERT it costs more to compile than both. So does a list of columns.
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

}  // namespace holdfast::stores::sqlite
