#include "client/waiter.hpp"

#include "client/queued_acquire.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// For a call besides those that keep a place in the queue.
constexpr milliseconds call_timeout{2000};

/// Sleeps until the reason for the refusal may be gone, or it is time to ask again. Returns the lock if it was handed
/// over.
std::optional<HandedOn> sleep_on(Store& store, const QueuedAcquire& turn, const Error& obstacle,
                                 const Patience& patience, const Clock& clock) {
    const Deadline until{std::min(patience.deadline.at, clock.boottime() + turn.nap(obstacle))};
    const std::stop_token& stop = patience.stop;
    if (auto watch = turn.watch(obstacle)) {
        watch->stop = stop;
        if (auto woken = store.wait_for_change(*watch, until)) return std::move(*woken);
    }
    // The store cannot be reached, or cannot wake us: wait for time to pass.
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any nobody;
    while (!stop.stop_requested() && !until.passed(clock))
        nobody.wait_for(lock, stop, std::min(until.remaining(clock), milliseconds{100}), [] { return false; });
    return std::nullopt;
}

Result<Granted> ask(Store& store, QueuedAcquire& turn, const Clock& clock) {
    while (true) {
        const std::vector<Request> batch = turn.ask();
        const Boottime sent_at = clock.boottime();
        auto granted = turn.answered(store.apply(batch, turn.time_to_ask()), sent_at);
        if (!turn.asks_again()) return granted;
    }
}

/// Makes a lease that was handed over last its ttl. A refusal or a lost answer is found out by asking again.
Result<Granted> extend(Store& store, const QueuedAcquire& turn, const Clock& clock) {
    const Boottime sent_at = clock.boottime();
    auto reply = store.apply_one(turn.extension(), turn.time_to_ask());
    if (!reply) return std::unexpected(reply.error());
    return Granted{std::move(*reply), sent_at, turn.request().as};
}

Result<void> withdraw(Store& store, const QueuedAcquire& turn, const Clock& clock) {
    return turn.withdrawn(store.apply(turn.withdrawal(), Deadline::in(clock, call_timeout)));
}

}  // namespace

milliseconds time_left(const LockStatus& lock) {
    // A store may let a lease begin a little later than it looked.
    return lock.lease->expires_at - std::max(lock.lease->renewed_at, lock.as_of);
}

Result<Granted> acquire_now(Store& store, const Acquire& request, const Clock& clock, Deadline deadline) {
    const Boottime sent_at = clock.boottime();
    auto reply = store.apply_one(request, deadline);
    if (!reply) return std::unexpected(reply.error());
    return Granted{std::move(*reply), sent_at, request.as};
}

Result<Granted> acquire_in_turn(Store& store, Acquire request, const Clock& clock, const Patience& patience) {
    QueuedAcquire turn(std::move(request), clock);

    while (true) {
        auto granted = ask(store, turn, clock);
        if (granted) return granted;
        const Error error = granted.error();
        if (!QueuedAcquire::is_passing(error.code)) return granted;
        if (patience.blocked) patience.blocked(error);

        if (patience.stop.stop_requested() || patience.deadline.passed(clock)) {
            if (auto left = withdraw(store, turn, clock); !left) return std::unexpected(left.error());
            return granted;
        }
        auto handed_on = sleep_on(store, turn, error, patience, clock);
        if (!handed_on) continue;
        if (patience.enough && time_left(handed_on->lock) >= *patience.enough)
            return Granted{{std::move(handed_on->lock), std::nullopt}, handed_on->seen_from, turn.request().as};
        if (auto extended = extend(store, turn, clock)) return extended;
    }
}

}  // namespace holdfast::client
