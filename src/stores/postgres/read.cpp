#include "stores/postgres/read.hpp"

#include "kernel/step.hpp"
#include "stores/common/query.hpp"
#include "stores/common/sealed.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace holdfast::stores::postgres {
namespace {

/// The kinds of rows that `Statements::view` answers.
enum class RowKind : std::int64_t { clock = 0, record = 1, queue = 2, ticket = 3 };

/// The other columns of a record's row.
enum class Beside : std::int64_t { nothing = 0, history = 1, session = 2, dead_session = 3 };

Result<LockName> name_in(const Rows& rows, int row, int column) {
    auto name = LockName::parse(rows.text(row, column));
    if (!name) return fail(Errc::record_corrupt, "a row of the store has a name that no lock can have");
    return name;
}

/// The columns that repeat parts of the record.
struct Repeated {
    std::uint64_t token;
    std::optional<LockId> lock_id;
};

Result<Unsealed<kernel::Record>> record_in(base::ByteView data, const LockName& name, const Repeated& repeated,
                                           Instant now) {
    auto record = unsealed_record(data, name, now);
    if (!record) return record;
    const auto& held = record->value.held;
    const auto lock_id = held ? std::optional(held->lease.lock_id) : std::nullopt;
    if (record->value.token.value != repeated.token || lock_id != repeated.lock_id)
        return std::unexpected(unreadable(name, "the record"));
    return record;
}

Result<LockView> lock_in(const Rows& rows, int row, const LockName& name, Instant now) {
    const bool has_history = static_cast<Beside>(rows.number(row, 3)) == Beside::history;
    if (rows.is_null(row, 5)) {
        // A record that is gone although the lock has a history was lost. Taking the lock for free would let a
        // second holder in.
        if (has_history) return std::unexpected(unreadable(name, "the record"));
        return LockView{.record = kernel::blank(name)};
    }
    auto record = record_in(rows.bytes(row, 5), name,
                            {static_cast<std::uint64_t>(rows.number(row, 2)), rows.lock_id(row, 4)}, now);
    if (!record) return std::unexpected(record.error());
    return LockView{.record = std::move(record->value), .moved = record->moved};
}

Result<Unsealed<kernel::Ticket>> ticket_in(const Rows& rows, int row, const LockName& name, Instant now) {
    auto ticket = unsealed_ticket(rows.bytes(row, 5), name, now);
    if (!ticket) return ticket;
    if (ticket->value.number != static_cast<std::uint64_t>(rows.number(row, 2)) ||
        ticket->value.lock_id != rows.lock_id(row, 4))
        return std::unexpected(unreadable(name, "a place in the queue"));
    return ticket;
}

void add_ticket(Result<LockView>& lock, Result<Unsealed<kernel::Ticket>> found) {
    if (!lock) return;
    if (!found) {
        lock = std::unexpected(found.error());
        return;
    }
    kernel::Ticket& ticket = found->value;
    const bool known = std::ranges::any_of(lock->tickets, [&](const auto& t) { return t.number == ticket.number; });
    if (known) return;
    if (found->moved) lock->moved_tickets.push_back(ticket.lock_id);
    lock->tickets.push_back(std::move(ticket));
}

base::Bytes copy_of(base::ByteView bytes) { return {bytes.begin(), bytes.end()}; }

/// As LIMIT has it.
std::optional<std::int64_t> count_of(const std::optional<std::size_t>& limit) {
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
    return limit ? std::optional(static_cast<std::int64_t>(std::min(*limit, most))) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> judged(const Clock& clock) {
    const auto instant = clock.judges();
    return instant ? std::optional<std::int64_t>(instant->time_since_epoch().count()) : std::nullopt;
}

base::ByteView bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

Statement ask_view(const Statements& statements, const Clock& clock, std::span<const Wanted> wanted,
                   const std::set<LockName>& contended) {
    Array names(Type::bytes);
    Array depths(Type::number);
    Array names_of_own(Type::bytes);
    Array own(Type::uuid);
    Array asked_for(Type::number);
    for (const Wanted& lock : wanted) {
        asked_for.add(std::int64_t{contended.contains(lock.name)});
        names.add(lock.name.text());
        depths.add(static_cast<std::int64_t>(lock.depth));
        for (const LockId& ticket : lock.own_tickets) {
            names_of_own.add(lock.name.text());
            own.add(ticket);
        }
    }
    Statement statement(statements.view);
    statement.bind(judged(clock)).bind(names).bind(depths).bind(names_of_own).bind(own).bind(asked_for);
    return statement;
}

View read_view(const Rows& rows) {
    View view;
    // The rows have no promised order, and every one of them needs the clock.
    const auto each = [&](RowKind kind, auto read) {
        for (int row = 0; row < rows.count(); ++row)
            if (static_cast<RowKind>(rows.number(row, 0)) == kind) read(row);
    };
    each(RowKind::clock, [&](int row) { view.now = Instant(std::chrono::milliseconds(rows.number(row, 2))); });
    each(RowKind::record, [&](int row) {
        const auto name = name_in(rows, row, 1);
        if (!name) return;
        view.locks.emplace(*name, lock_in(rows, row, *name, view.now));
        if (!rows.is_null(row, 2)) view.present.insert(*name);
        if (!rows.is_null(row, 5)) view.records.emplace(*name, copy_of(rows.bytes(row, 5)));
        const auto beside = static_cast<Beside>(rows.number(row, 3));
        if (beside == Beside::session || beside == Beside::dead_session) view.bound.insert(*name);
        if (beside == Beside::dead_session) view.orphaned.insert(*name);
    });
    const auto lock_of = [&](int row) -> Result<LockView>* {
        const auto name = name_in(rows, row, 1);
        const auto found = name ? view.locks.find(*name) : view.locks.end();
        return found == view.locks.end() ? nullptr : &found->second;
    };
    each(RowKind::queue, [&](int row) {
        Result<LockView>* const lock = lock_of(row);
        if (lock == nullptr || !*lock) return;
        (*lock)->last_number = static_cast<std::uint64_t>(rows.number(row, 2));
        (*lock)->waiters = static_cast<std::uint64_t>(rows.number(row, 3));
    });
    each(RowKind::ticket, [&](int row) {
        const auto name = name_in(rows, row, 1);
        if (Result<LockView>* const lock = lock_of(row)) add_ticket(*lock, ticket_in(rows, row, *name, view.now));
        if (const auto lock_id = rows.lock_id(row, 4)) view.places.emplace(*lock_id, copy_of(rows.bytes(row, 5)));
    });
    return view;
}

Statement ask_traces(const Statements& statements, const LockName& name) {
    return Statement(statements.traces).bind(bytes_of(name.text()));
}

kernel::Damage read_damage(const Rows& rows, const LockName& name, const View& view) {
    const auto bytes_at = [&](int column) {
        return rows.is_null(0, column) ? std::nullopt : std::optional(copy_of(rows.bytes(0, column)));
    };
    const auto number_at = [&](int column) { return static_cast<std::uint64_t>(rows.number(0, column)); };
    Traces traces{.record = bytes_at(3),
                  .newest = bytes_at(6),
                  .oldest = bytes_at(7),
                  .token = {std::max(number_at(0), number_at(5))},
                  .seq = std::max(number_at(1), number_at(4))};
    for (const auto& [lock_id, ticket] : view.places) traces.tickets.push_back(ticket);
    const bool is_sound =
        traces.record && record_in(*traces.record, name, {number_at(0), rows.lock_id(0, 2)}, view.now);
    return damage_in(traces, name, is_sound, view.now);
}

Statement ask_list(const Statements& statements, const Clock& clock, const ListQuery& query) {
    // There is no name between a name and the same name followed by a zero byte.
    const std::string first = std::max(query.prefix, query.after + '\0');
    Statement statement(statements.list);
    // With an end even if there is no prefix: the plan is kept for all prefixes, and one for an end that may be absent
    // would read all later names.
    statement.bind(judged(clock)).bind(bytes_of(first)).bind(bytes_of(end_of_prefix(query.prefix)));
    statement.bind(query.with_free ? 1 : 0);
    statement.bind(query.changed_since ? std::optional<std::int64_t>(query.changed_since->time_since_epoch().count())
                                       : std::nullopt);
    statement.bind(count_of(query.limit));
    return statement;
}

Result<std::vector<LockStatus>> read_list(const Rows& rows, const ListQuery& query) {
    std::vector<LockStatus> found;
    for (int row = 0; row < rows.count(); ++row) {
        const auto name = name_in(rows, row, 0);
        if (!name) return std::unexpected(name.error());
        const Instant now(std::chrono::milliseconds(rows.number(row, 4)));
        const auto record = record_in(rows.bytes(row, 3), *name,
                                      {static_cast<std::uint64_t>(rows.number(row, 1)), rows.lock_id(row, 2)}, now);
        if (!record && query.with_unreadable) {
            found.push_back(kernel::unreadable_status(*name, now));
            continue;
        }
        if (!record) return std::unexpected(record.error());
        found.push_back(kernel::status_of(record->value, static_cast<std::uint64_t>(rows.number(row, 5)), now));
    }
    return found;
}

Statement ask_history(const Statements& statements, const HistoryQuery& query) {
    using Limits = std::numeric_limits<std::int64_t>;
    const std::int64_t since = query.since ? query.since->time_since_epoch().count() : Limits::min();
    constexpr auto most = static_cast<std::uint64_t>(Limits::max());
    const auto& texts = query.which == HistoryQuery::Which::newest ? statements.newest : statements.oldest;
    Statement statement(query.name ? texts.of_one : texts.of_all);
    if (query.name) {
        statement.bind(bytes_of(query.name->text()));
        statement.bind(static_cast<std::int64_t>(std::min(query.after_seq, most)));
    }
    statement.bind(since).bind(count_of(query.limit));
    return statement;
}

Result<std::vector<AuditEvent>> read_history(const Rows& rows, HistoryQuery::Which which) {
    std::vector<AuditEvent> events;
    for (int i = 0; i < rows.count(); ++i) {
        const int row = which == HistoryQuery::Which::oldest ? i : rows.count() - 1 - i;
        auto event = unsealed_event(rows.bytes(row, 2));
        if (!event) return std::unexpected(event.error());
        if (event->name.text() != rows.text(row, 0) || event->seq != static_cast<std::uint64_t>(rows.number(row, 1)))
            return fail(Errc::record_corrupt, "an event of the audit log stands in the place of another");
        events.push_back(std::move(*event));
    }
    return events;
}

bool Position::fires(const Watch& watch) const {
    if (watch.lease) return !has_lease;
    if (!watch.ticket) return watch.seen_seq != seq.value_or(0);
    return !seq || !is_queued || (is_open && ahead == 0);
}

Statement ask_positions(const Statements& statements, const Clock& clock, std::span<const HubWatch> watches) {
    Array names(Type::bytes);
    Array tickets(Type::uuid);
    Array leases(Type::uuid);
    for (const HubWatch& one : watches) {
        names.add(one.watch.name.text());
        tickets.add(one.watch.ticket);
        leases.add(one.watch.lease);
    }
    return Statement(statements.watches).bind(judged(clock)).bind(names).bind(tickets).bind(leases);
}

std::vector<Position> read_positions(const Rows& rows) {
    std::vector<Position> positions;
    for (int row = 0; row < rows.count(); ++row) {
        Position& one = positions.emplace_back();
        if (rows.is_null(row, 0)) continue;
        one.seq = static_cast<std::uint64_t>(rows.number(row, 0));
        one.is_open = rows.flag(row, 1);
        if (!rows.is_null(row, 2)) one.lease_left = std::chrono::milliseconds(rows.number(row, 2));
        one.is_queued = rows.flag(row, 3);
        one.ahead = static_cast<std::uint64_t>(rows.number(row, 4));
        one.has_lease = !rows.is_null(row, 5) && rows.flag(row, 5);
    }
    return positions;
}

}  // namespace holdfast::stores::postgres
