#include "client/waiter.hpp"

#include "base/jitter.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// A call that hangs longer than this would outlive the ticket that it keeps alive.
constexpr milliseconds call_timeout{2000};

/// The longest sleep of a waiter that has no place in this queue: a wake-up is a hint that may be lost.
milliseconds poll_interval(const Acquire& request) {
    return std::clamp(request.ttl.time() / 4, milliseconds{20}, milliseconds{1000});
}

/// How long a queued waiter can still find a lease that was granted without its knowledge: see `Asker`.
milliseconds certainty(const Acquire& request) {
    return request.max_hold ? std::min(request.ticket->time(), *request.max_hold) : request.ticket->time();
}

/// Short enough that a dead waiter does not block the others for long.
Ttl ticket_ttl(const Acquire& request) {
    return *Ttl::of(std::clamp(request.ttl.time(), milliseconds{3000}, milliseconds{10000}));
}

/// Sleeps until the reason for the refusal may be gone, or it is time to ask again. Returns the lock if it was handed
/// over.
std::optional<HandedOn> sleep_on(Store& store, const Acquire& request, const Error& obstacle, const Patience& patience,
                                 const Clock& clock) {
    const bool in_line = obstacle.holder && obstacle.holder->name == request.name;
    // The store tells a queued waiter when its turn comes. Until then it asks only to keep its place.
    const milliseconds longest = in_line ? certainty(request) / 3 : poll_interval(request);
    const milliseconds nap = base::random_between(longest / 2, longest);
    const Deadline until{std::min(patience.deadline.at, clock.boottime() + nap)};
    const std::stop_token& stop = patience.stop;
    if (obstacle.holder) {
        const Watch watch{obstacle.holder->name, obstacle.holder->seq,
                          in_line ? std::optional(request.as.lock_id) : std::nullopt, stop};
        if (auto woken = store.wait_for_change(watch, until)) return std::move(*woken);
    }
    // The store cannot be reached, or cannot wake us: wait for time to pass.
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any nobody;
    while (!stop.stop_requested() && !until.passed(clock))
        nobody.wait_for(lock, stop, std::min(until.remaining(clock), milliseconds{100}), [] { return false; });
    return std::nullopt;
}

bool worth_repeating(Errc code) { return code == Errc::store_unavailable || code == Errc::outcome_unknown; }

/// Asks for a lock again and again.
///
/// While an answer is missing it keeps its credentials: repeating the request shows whether it was granted. But not for
/// longer than a lease lasts: the store does not remember for ever which leases have ended, and one lock_id must not
/// name two of them. A queued waiter is in the same doubt, because the lock may have been handed over to it.
class Asker {
public:
    Asker(Store& store, Acquire request, const Clock& clock)
        : store_(store), clock_(clock), request_(std::move(request)) {}

    [[nodiscard]] const Acquire& request() const { return request_; }

    [[nodiscard]] Result<Granted> ask() {
        if (doubt_is_stale()) rotate_credentials();
        std::vector<Request> batch;
        if (former_) batch.emplace_back(Cancel{request_.name, *former_});
        batch.emplace_back(request_);
        const Boottime sent_at = clock_.boottime();
        auto replies = store_.apply(batch, time_to_ask());
        if (replies) former_.reset();
        const Reply reply = replies ? std::move(replies->back()) : std::unexpected(replies.error());
        if (reply) return Granted{*reply, sent_at, request_.as};

        const Errc code = reply.error().code;
        const bool is_over = code == Errc::lock_not_held || (code == Errc::lock_expired && in_line_since_);
        if (is_over && (doubted_since_ || in_line_since_)) {
            rotate_credentials();
            return ask();
        }
        if (code == Errc::outcome_unknown && !doubted_since_) doubted_since_ = sent_at;
        // If an answer was a grant, the lease would be there still.
        if (code == Errc::lock_conflict && !doubt_is_stale()) doubted_since_.reset();
        if (code == Errc::lock_conflict) in_line_since_ = sent_at;
        return std::unexpected(reply.error());
    }

    /// Makes a lease that was handed over last its ttl. A refusal or a lost answer is found out by the next `ask`.
    [[nodiscard]] Result<Granted> extend() {
        const Boottime sent_at = clock_.boottime();
        auto reply = store_.apply_one(Renew{request_.name, request_.as, request_.ttl}, time_to_ask());
        if (!reply) return std::unexpected(reply.error());
        return Granted{std::move(*reply), sent_at, request_.as};
    }

    /// Gives up the place in the queue, and a grant whose answer was lost. Returns the outcome of the whole wait:
    /// `outcome_unknown` if there may be such a grant.
    [[nodiscard]] Result<void> withdraw() {
        std::vector<Request> batch{Cancel{request_.name, request_.as}};
        if (former_) batch.emplace_back(Cancel{request_.name, *former_});
        const auto left = store_.apply(batch, Deadline::in(clock_, call_timeout));
        const bool may_be_handed_on = in_line_since_ && clock_.boottime() < *in_line_since_ + request_.ticket->time();
        const bool is_sure = !doubted_since_ && !former_ && !may_be_handed_on;
        if (!left) return is_sure ? Result<void>{} : fail(Errc::outcome_unknown, left.error().message);
        for (const Reply& reply : *left)
            if (!reply && !is_sure) return fail(Errc::outcome_unknown, reply.error().message);
        return {};
    }

private:
    /// Until then a grant whose answer was lost is still in the store. A little before the lease ends by our clock: the
    /// store's may be faster, and both count whole milliseconds.
    [[nodiscard]] Boottime end_of_doubt() const {
        const auto end = [](std::optional<Boottime> since, milliseconds time) {
            return since ? *since + time * 9 / 10 : Boottime::max();
        };
        return std::min(end(doubted_since_, request_.ttl.time()), end(in_line_since_, certainty(request_)));
    }

    [[nodiscard]] bool doubt_is_stale() const { return clock_.boottime() >= end_of_doubt(); }

    /// A request that a stopped store receives late must not be applied once the doubt has become stale.
    [[nodiscard]] Deadline time_to_ask() const {
        return {std::min(Deadline::in(clock_, call_timeout).at, end_of_doubt())};
    }

    void rotate_credentials() {
        former_ = std::exchange(request_.as, Credentials::random());
        doubted_since_.reset();
        in_line_since_.reset();
    }

    Store& store_;
    const Clock& clock_;
    Acquire request_;
    std::optional<Boottime> doubted_since_{};  ///< When the first request left whose answer is still missing.
    std::optional<Boottime> in_line_since_{};  ///< When the last request left that was answered with a place in line.
    std::optional<Credentials> former_{};      ///< To be cancelled. What they left in the store would expire anyway.
};

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
    if (!request.ticket) request.ticket = ticket_ttl(request);
    Asker asker(store, std::move(request), clock);

    while (true) {
        auto granted = asker.ask();
        if (granted) return granted;
        const Error error = granted.error();
        const bool conflict = error.code == Errc::lock_conflict;
        if (!conflict && !worth_repeating(error.code)) return granted;
        if (patience.blocked) patience.blocked(error);

        if (patience.stop.stop_requested() || patience.deadline.passed(clock)) {
            if (auto left = asker.withdraw(); !left) return std::unexpected(left.error());
            return granted;
        }
        auto handed_on = sleep_on(store, asker.request(), error, patience, clock);
        if (!handed_on) continue;
        if (patience.enough && time_left(handed_on->lock) >= *patience.enough)
            return Granted{{std::move(handed_on->lock), std::nullopt}, handed_on->seen_from, asker.request().as};
        if (auto extended = asker.extend()) return extended;
    }
}

}  // namespace holdfast::client
