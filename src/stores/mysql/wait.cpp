#include "stores/mysql/wait.hpp"

#include "base/jitter.hpp"
#include "stores/mysql/codec.hpp"
#include "stores/mysql/server_facts.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace holdfast::stores::mysql {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds shortest{5};
constexpr milliseconds longest_near{200};
constexpr milliseconds longest_far{1000};
constexpr std::size_t names_in_a_query = 200;

}  // namespace

Sql poll_query(std::span<const LockName> names, const Clock& clock) {
    const Sql now = now_of(clock);
    Sql sql("SELECT l.name, 0, l.seq, l.lock_id IS NULL OR l.expires_at <= ");
    sql << now << ", l.lock_id FROM holdfast_locks l WHERE l.name IN " << list_of(names);
    // One derived table for each name, because only then the server reads no more of a queue than its head.
    for (const LockName& name : names) {
        sql << " UNION ALL (SELECT q.name, q.number, NULL, NULL, q.lock_id FROM holdfast_queue q "
               "FORCE INDEX (holdfast_queue_order) WHERE q.name = ";
        sql.value(name.text()) << " AND q.expires_at > " << now << " ORDER BY q.number LIMIT " << near_the_head + 1
                               << ")";
    }
    return sql;
}

std::map<std::string, PolledLock> read_poll(Answer& answer) {
    std::map<std::string, PolledLock> locks;
    while (const auto row = answer.next()) {
        PolledLock& lock = locks[std::string(row->text(0))];
        if (row->is_null(2)) {
            lock.in_queue.emplace(row->number(1), row->text(4));
            continue;
        }
        lock.seq = static_cast<std::uint64_t>(row->number(2));
        lock.is_open = row->number(3) != 0;
        lock.holder = row->text(4);
    }
    return locks;
}

Position Position::of(const Watch& watch, const PolledLock* lock) {
    const std::uint64_t seq = lock == nullptr ? 0 : lock->seq;
    if (watch.lease) return {.seq = seq, .fires = lock == nullptr || lock->holder != watch.lease->text()};
    if (!watch.ticket) return {.seq = seq, .fires = seq != watch.seen_seq};
    const std::string ticket = watch.ticket->text();
    // The ticket is gone: its owner has the lock, or must ask again.
    if (lock == nullptr || lock->holder == ticket) return {.seq = seq, .fires = true};
    const auto found = std::ranges::find(lock->in_queue, ticket, [](const auto& one) { return one.second; });
    const auto ahead = static_cast<std::uint64_t>(std::distance(lock->in_queue.begin(), found));
    const bool has_no_ticket = found == lock->in_queue.end() && ahead <= near_the_head;
    return {.seq = seq, .ahead = ahead, .fires = has_no_ticket || (lock->is_open && ahead == 0)};
}

milliseconds PollRhythm::next(const Position& position, std::size_t watches) {
    const bool is_near = position.ahead <= near_the_head;
    const auto first = shortest * static_cast<milliseconds::rep>(position.ahead + 1);
    pause_ = last_ == position ? std::min(pause_ * 3 / 2, is_near ? longest_near : longest_far) : first;
    last_ = position;
    const milliseconds most = is_near ? pause_ : pause_far_back(pause_, watches);
    return base::random_between(most * 2 / 3, most);
}

void WatchSource::add(std::span<const HubWatch> watches) {
    for (const HubWatch& one : watches) rhythms_.try_emplace(one.id);
}

void WatchSource::remove(std::span<const HubWatch> watches) {
    for (const HubWatch& one : watches) rhythms_.erase(one.id);
}

std::vector<Sighting> WatchSource::look(std::span<const HubWatch> watches) {
    std::vector<Sighting> seen(watches.size());
    const auto locks = poll(watches);
    for (std::size_t i = 0; i < watches.size(); ++i) {
        if (!locks) {
            seen[i].fired.emplace(std::unexpected(locks.error()));
            continue;
        }
        const auto lock = locks->find(watches[i].watch.name.text());
        const Position position = Position::of(watches[i].watch, lock == locks->end() ? nullptr : &lock->second);
        // A change that is visible may still be lost in a failover, so a waiter that has the lock asks for it once
        // more.
        if (position.fires) seen[i].fired.emplace(std::nullopt);
        // A holder is not about to act, so its pauses need not be short.
        const milliseconds pause = watches[i].watch.lease ? base::random_between(longest_far * 2 / 3, longest_far)
                                                          : rhythms_[watches[i].id].next(position, rhythms_.size());
        seen[i].next_look = ticks_.aligned(clock_.boottime(), pause);
    }
    return seen;
}

Result<std::map<std::string, PolledLock>> WatchSource::poll(std::span<const HubWatch> watches) {
    std::set<LockName> distinct;
    for (const HubWatch& one : watches) distinct.insert(one.watch.name);
    const std::vector<LockName> names(distinct.begin(), distinct.end());
    std::map<std::string, PolledLock> locks;
    for (std::span<const LockName> left = names; !left.empty();) {
        const std::size_t count = std::min(names_in_a_query, left.size());
        auto answers = ask_(poll_query(left.first(count), clock_));
        if (!answers) return std::unexpected(answers.error());
        if (*answers) locks.merge(read_poll((*answers)->front()));
        left = left.subspan(count);
    }
    return locks;
}

Heard WatchSource::listen(milliseconds most) {
    interrupt_.sleep({}, most);
    // Polling goes on in real time although a clock that a test moves by hand stands still.
    return {.all = clock_.judges().has_value()};
}

}  // namespace holdfast::stores::mysql
