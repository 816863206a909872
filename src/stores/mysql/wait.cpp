#include "stores/mysql/wait.hpp"

#include "base/jitter.hpp"
#include "stores/mysql/server_facts.hpp"

#include <algorithm>

namespace holdfast::stores::mysql {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds shortest{5};
constexpr milliseconds longest_near{200};
constexpr milliseconds longest_far{1000};
/// Who has more before him is far back.
constexpr std::uint64_t near = 3;

}  // namespace

Waiting::Place Waiting::enter(const Watch& watch) {
    const std::scoped_lock lock(mutex_);
    const auto entry = entries_.emplace(entries_.end());
    entry->watch = &watch;
    return {*this, entry};
}

void Waiting::wake(std::span<const Change> changes) {
    const std::scoped_lock lock(mutex_);
    for (Entry& entry : entries_) {
        const auto concerns = [&](const Change& change) {
            return change.name == entry.watch->name &&
                   (entry.watch->ticket ? change.next == entry.watch->ticket : change.record.has_value());
        };
        if (!std::ranges::any_of(changes, concerns)) continue;
        entry.woken = true;
        entry.wake_up.notify_all();
    }
}

Waiting::Place::~Place() {
    const std::scoped_lock lock(waiting_.mutex_);
    waiting_.entries_.erase(entry_);
}

void Waiting::Place::sleep(milliseconds time) {
    std::unique_lock lock(waiting_.mutex_);
    entry_->wake_up.wait_for(lock, entry_->watch->stop, time, [&] { return entry_->woken; });
    entry_->woken = false;
}

Sql glance_query(const Watch& watch, const Clock& clock) {
    Sql sql("SELECT l.seq");
    if (watch.ticket) {
        const Sql now = now_of(clock);
        sql << ", l.lock_id IS NULL OR l.expires_at <= " << now << " OR l.lock_id = ";
        sql.value(watch.ticket->text())
            << ", (SELECT COUNT(*) FROM (SELECT 1 FROM holdfast_queue q FORCE INDEX (holdfast_queue_order) WHERE "
               "q.name = ";
        sql.value(watch.name.text()) << " AND q.expires_at > " << now
                                     << " AND q.number < (SELECT m.number FROM holdfast_queue m WHERE m.name = ";
        sql.value(watch.name.text()) << " AND m.lock_id = ";
        sql.value(watch.ticket->text()) << ") LIMIT " << near + 1 << ") AS ahead)";
    }
    (sql << " FROM holdfast_locks l WHERE l.name = ").value(watch.name.text());
    return sql;
}

Glance glance_in(Answer& answer, bool with_ticket) {
    const auto row = answer.next();
    if (!row) return {};
    Glance glance{.seq = static_cast<std::uint64_t>(row->number(0))};
    if (!with_ticket) return glance;
    glance.before_me = static_cast<std::uint64_t>(row->number(2));
    glance.my_turn = row->number(1) != 0 && glance.before_me == 0;
    return glance;
}

milliseconds PollRhythm::next(const Glance& glance) {
    const bool is_near = glance.before_me <= near;
    const auto first = shortest * static_cast<milliseconds::rep>(glance.before_me + 1);
    pause_ = last_ == glance ? std::min(pause_ * 3 / 2, is_near ? longest_near : longest_far) : first;
    last_ = glance;
    return base::random_between(pause_ * 2 / 3, pause_);
}

}  // namespace holdfast::stores::mysql
