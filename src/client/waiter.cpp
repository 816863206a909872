#include "client/waiter.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// A call that hangs longer than this would outlive the ticket that it keeps alive.
constexpr milliseconds call_timeout{2000};

/// The longest sleep of who has no place in this queue: a wake-up is a hint that may be lost.
milliseconds poll_interval(const Acquire& request) {
    return std::clamp(request.ttl.time() / 4, milliseconds{20}, milliseconds{1000});
}

/// Anything from half of `most` on, so that waiters spread out.
milliseconds jittered(milliseconds most, std::minstd_rand& random) {
    return milliseconds{std::uniform_int_distribution<milliseconds::rep>(most.count() / 2, most.count())(random)};
}

/// Short enough that a dead waiter does not block the others for long.
Ttl ticket_ttl(const Acquire& request) {
    return *Ttl::of(std::clamp(request.ttl.time(), milliseconds{3000}, milliseconds{10000}));
}

/// Sleeps until what was in the way may have gone, or it is time to look again.
void sleep_on(Store& store, const Acquire& request, const Error& obstacle, const Patience& patience, const Clock& clock,
              std::minstd_rand& random) {
    const bool in_line = obstacle.holder && obstacle.holder->name == request.name;
    // Who stands in line is told by the store when its turn comes, and asks in between only to keep its place.
    const milliseconds nap = jittered(in_line ? request.ticket->time() / 3 : poll_interval(request), random);
    const Deadline until{std::min(patience.deadline.at, clock.boottime() + nap)};
    const std::stop_token& stop = patience.stop;
    if (obstacle.holder) {
        const Watch watch{obstacle.holder->name, obstacle.holder->seq,
                          in_line ? std::optional(request.as.lock_id) : std::nullopt, stop};
        if (store.wait_for_change(watch, until)) return;
    }
    // The store is not reached, or has no wake-up to give: what is left is time.
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any nobody;
    while (!stop.stop_requested() && !until.passed(clock))
        nobody.wait_for(lock, stop, std::min(until.remaining(clock), milliseconds{100}), [] { return false; });
}

bool worth_repeating(Errc code) { return code == Errc::store_unavailable || code == Errc::outcome_unknown; }

}  // namespace

Result<Granted> acquire_now(Store& store, const Acquire& request, const Clock& clock, Deadline deadline) {
    const Boottime sent_at = clock.boottime();
    auto reply = store.apply_one(request, deadline);
    if (!reply) return std::unexpected(reply.error());
    return Granted{std::move(*reply), sent_at};
}

Result<Granted> acquire_in_turn(Store& store, Acquire request, const Clock& clock, const Patience& patience) {
    std::minstd_rand random(std::random_device{}());
    if (!request.ticket) request.ticket = ticket_ttl(request);
    bool in_doubt = false;

    while (true) {
        auto granted = acquire_now(store, request, clock, Deadline::in(clock, call_timeout));
        if (granted) return granted;
        const Error error = granted.error();
        const bool conflict = error.code == Errc::lock_conflict;
        if (!conflict && !worth_repeating(error.code)) return granted;
        if (conflict && patience.blocked) patience.blocked(error);
        in_doubt = !conflict && (in_doubt || error.code == Errc::outcome_unknown);

        if (patience.stop.stop_requested() || patience.deadline.passed(clock)) {
            // The ticket goes, and so does a grant whose answer was lost on the way.
            const auto left = store.apply_one(Cancel{request.name, request.as}, Deadline::in(clock, call_timeout));
            if (!left && in_doubt) return fail(Errc::outcome_unknown, left.error().message);
            return granted;
        }
        sleep_on(store, request, error, patience, clock, random);
    }
}

}  // namespace holdfast::client
