#include "stores/mysql/queue_rows.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::stores::mysql {
namespace {

using std::chrono::milliseconds;

/// Up to this many tickets, of all locks of a batch together, all are read.
constexpr std::int64_t few = 16;
/// The most expired tickets of a lock that one batch removes.
constexpr std::int64_t most_dead = 100;

constexpr Sql::Text select_ticket = "SELECT name, number, lock_id, expires_at, data FROM holdfast_queue ";
/// The statement names the index, since in our sessions the server does not estimate the length of a queue.
constexpr Sql::Text in_order = "FORCE INDEX (holdfast_queue_order) WHERE name = ";
constexpr Sql::Text by_key = "FORCE INDEX (PRIMARY) WHERE name = ";

Sql names_of(std::span<const Wanted> wanted) {
    std::vector<LockName> names;
    names.reserve(wanted.size());
    for (const Wanted& lock : wanted) names.push_back(lock.name);
    return list_of(names);
}

}  // namespace

Sql Queues::first_look(std::span<const Wanted> wanted, const Clock& clock) {
    // One statement instead of two. The hint keeps a small table from being read as a whole.
    return Sql("SELECT ") << identity_columns(clock)
                          << ", q.name, q.number, q.lock_id, q.expires_at, q.data FROM holdfast_meta m "
                             "LEFT JOIN holdfast_queue q FORCE INDEX (PRIMARY) ON q.name IN "
                          << names_of(wanted) << " WHERE m.id = 1 LIMIT " << few + 1;
}

Result<std::optional<Identity>> Queues::take_first_look(Answer& answer, std::span<const Wanted> wanted) {
    queues_.clear();
    for (const Wanted& lock : wanted) queues_[lock.name.text()];
    seen_all_ = !std::cmp_greater(answer.count(), few);
    std::optional<Identity> identity;
    while (const auto row = answer.next()) {
        if (!identity) {
            const auto read = identity_in(*row, columns_of_identity - 1);
            if (!read) return std::unexpected(read.error());
            identity = *read;
        }
        // Without tickets there is one row, which has none.
        if (seen_all_ && !row->is_null(columns_of_identity)) take(*row, columns_of_identity);
    }
    return identity;
}

Sql Queues::second_look(std::span<const Wanted> wanted, Instant now) {
    Sql sql("SELECT name, MAX(number), SUM(expires_at > ");
    sql << now << ") FROM holdfast_queue FORCE INDEX (holdfast_queue_order) WHERE name IN " << names_of(wanted)
        << " GROUP BY name";
    for (const Wanted& lock : wanted) {
        if (lock.depth == 0) continue;
        Sql name;
        name.value(lock.name.text());
        sql << "; " << select_ticket << in_order << name << " AND expires_at > " << now << " ORDER BY number LIMIT "
            << static_cast<std::uint64_t>(lock.depth);
        sql << "; " << select_ticket << in_order << name << " AND expires_at <= " << now << " ORDER BY number LIMIT "
            << most_dead;
        if (lock.own_tickets.empty()) continue;
        sql << "; " << select_ticket << by_key << name << " AND lock_id IN (";
        Comma comma;
        for (const LockId& own : lock.own_tickets) (sql << comma.next()).value(own.text());
        sql << ")";
    }
    return sql;
}

void Queues::take_second_look(std::span<Answer> answers) {
    while (const auto row = answers.front().next()) {
        Queue& queue = queues_[std::string(row->text(0))];
        queue.last_number = static_cast<std::uint64_t>(row->number(1));
        queue.live = static_cast<std::uint64_t>(row->number(2));
    }
    for (Answer& answer : answers.subspan(1))
        while (const auto row = answer.next()) take(*row, 0);
}

void Queues::take(const Row& row, std::size_t column) {
    Queue& queue = queues_[std::string(row.text(column))];
    Stored stored{static_cast<std::uint64_t>(row.number(column + 1)),
                  std::string(row.text(column + 2)),
                  Instant{milliseconds{row.number(column + 3)}},
                  {}};
    const base::ByteView data = row.bytes(column + 4);
    stored.data.assign(data.begin(), data.end());
    queue.last_number = std::max(queue.last_number, stored.number);
    queue.tickets.insert_or_assign(stored.lock_id, std::move(stored));
}

Result<Unsealed<kernel::Ticket>> Queues::unsealed(const Stored& stored, const LockName& name, const Judging& judging) {
    auto ticket = unsealed_ticket(stored.data, name, judging.now, judging.tolerance);
    if (!ticket) return ticket;
    const bool agrees = ticket->value.number == stored.number && ticket->value.lock_id.text() == stored.lock_id &&
                        (ticket->moved || ticket->value.expires_at == stored.expires_at);
    if (!agrees) return std::unexpected(unreadable(name, "a place in the queue"));
    return ticket;
}

Result<void> Queues::add_to(LockView& view, const LockName& name, const Judging& judging) const {
    const auto found = queues_.find(name.text());
    if (found == queues_.end()) return {};
    const Queue& queue = found->second;
    view.last_number = queue.last_number;
    for (const auto& [lock_id, stored] : queue.tickets) {
        auto ticket = unsealed(stored, name, judging);
        if (!ticket) return std::unexpected(ticket.error());
        if (ticket->value.expires_at > judging.now) ++view.waiters;
        if (ticket->moved) view.moved_tickets.push_back(ticket->value.lock_id);
        view.tickets.push_back(std::move(ticket->value));
    }
    if (queue.live) view.waiters = *queue.live;
    return {};
}

std::vector<base::Bytes> Queues::stored_of(const LockName& name) const {
    std::vector<base::Bytes> all;
    if (const auto found = queues_.find(name.text()); found != queues_.end())
        for (const auto& [lock_id, stored] : found->second.tickets) all.push_back(stored.data);
    return all;
}

Sql put_tickets(std::span<const Change> changes, Instant now) {
    Sql rows;
    Sql sql;
    Comma comma;
    for (const Change& change : changes) {
        for (const kernel::Ticket& ticket : change.put) {
            rows << comma.next() << "(";
            rows.value(change.name.text()) << ", ";
            rows.value(ticket.lock_id.text()) << ", " << ticket.number << ", ";
            rows.value(ticket.holder.text) << ", " << ticket.expires_at << ", ";
            rows.value(sealed(ticket, now)) << ")";
        }
        if (change.clears_queue) {
            sql << "DELETE FROM holdfast_queue WHERE name = ";
            sql.value(change.name.text()) << "; ";
        }
        if (change.dropped.empty()) continue;
        sql << "DELETE FROM holdfast_queue WHERE name = ";
        sql.value(change.name.text()) << " AND lock_id IN (";
        Comma between;
        for (const kernel::Ticket& ticket : change.dropped) (sql << between.next()).value(ticket.lock_id.text());
        sql << "); ";
    }
    if (rows.empty()) return sql;
    return sql << "INSERT INTO holdfast_queue (name, lock_id, number, holder, expires_at, data) VALUES " << rows
               << " ON DUPLICATE KEY UPDATE number = VALUES(number), holder = VALUES(holder), "
                  "expires_at = VALUES(expires_at), data = VALUES(data); ";
}

}  // namespace holdfast::stores::mysql
