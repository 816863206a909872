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

/// The longest sleep of who has no place in this queue: a wake-up is a hint that may be lost.
milliseconds poll_interval(const Acquire& request) {
    return std::clamp(request.ttl.time() / 4, milliseconds{20}, milliseconds{1000});
}

/// How long who stands in line can be sure to find a lease that it was not told of: see `Asker`.
milliseconds certainty(const Acquire& request) {
    return request.max_hold ? std::min(request.ticket->time(), *request.max_hold) : request.ticket->time();
}

/// Short enough that a dead waiter does not block the others for long.
Ttl ticket_ttl(const Acquire& request) {
    return *Ttl::of(std::clamp(request.ttl.time(), milliseconds{3000}, milliseconds{10000}));
}

/// Sleeps until what was in the way may have gone, or it is time to look again. The lock, if it was handed on.
std::optional<HandedOn> sleep_on(Store& store, const Acquire& request, const Error& obstacle, const Patience& patience,
                                 const Clock& clock) {
    const bool in_line = obstacle.holder && obstacle.holder->name == request.name;
    // Who stands in line is told by the store when its turn comes, and asks in between only to keep its place.
    const milliseconds longest = in_line ? certainty(request) / 3 : poll_interval(request);
    const milliseconds nap = base::random_between(longest / 2, longest);
    const Deadline until{std::min(patience.deadline.at, clock.boottime() + nap)};
    const std::stop_token& stop = patience.stop;
    if (obstacle.holder) {
        const Watch watch{obstacle.holder->name, obstacle.holder->seq,
                          in_line ? std::optional(request.as.lock_id) : std::nullopt, stop};
        if (auto woken = store.wait_for_change(watch, until)) return std::move(*woken);
    }
    // The store is not reached, or has no wake-up to give: what is left is time.
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any nobody;
    while (!stop.stop_requested() && !until.passed(clock))
        nobody.wait_for(lock, stop, std::min(until.remaining(clock), milliseconds{100}), [] { return false; });
    return std::nullopt;
}

bool worth_repeating(Errc code) { return code == Errc::store_unavailable || code == Errc::outcome_unknown; }

/// Somebody who asks for a lock again and again.
///
/// As long as an answer is missing it stays who it is: asking again is how it finds out. But not longer than a lease
/// lasts: the store does not remember for ever which leases have ended, and one lock_id must not name two of them. Who
/// stands in line is in the same doubt, because the lock may have been handed on to it.
class Asker {
public:
    Asker(Store& store, Acquire request, const Clock& clock)
        : store_(store), clock_(clock), request_(std::move(request)) {}

    [[nodiscard]] const Acquire& request() const { return request_; }

    [[nodiscard]] Result<Granted> ask() {
        if (doubt_is_stale()) become_another();
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
            become_another();
            return ask();
        }
        if (code == Errc::outcome_unknown && !doubted_since_) doubted_since_ = sent_at;
        // If an answer was a grant, the lease would be there still.
        if (code == Errc::lock_conflict && !doubt_is_stale()) doubted_since_.reset();
        if (code == Errc::lock_conflict) in_line_since_ = sent_at;
        return std::unexpected(reply.error());
    }

    /// Gives up the place in the queue, and a grant whose answer was lost on the way. What it returns is the outcome of
    /// the whole: `outcome_unknown` if there may be such a grant.
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
    /// Until then a grant that was not heard of must be there still. A little before the lease ends by our clock: the
    /// store's may be faster, and both count whole milliseconds.
    [[nodiscard]] Boottime end_of_doubt() const {
        const auto end = [](std::optional<Boottime> since, milliseconds time) {
            return since ? *since + time * 9 / 10 : Boottime::max();
        };
        return std::min(end(doubted_since_, request_.ttl.time()), end(in_line_since_, certainty(request_)));
    }

    [[nodiscard]] bool doubt_is_stale() const { return clock_.boottime() >= end_of_doubt(); }

    /// What it says to a store that was stopped must not count when the doubt has become stale in the meantime.
    [[nodiscard]] Deadline time_to_ask() const {
        return {std::min(Deadline::in(clock_, call_timeout).at, end_of_doubt())};
    }

    void become_another() {
        former_ = std::exchange(request_.as, Credentials::random());
        doubted_since_.reset();
        in_line_since_.reset();
    }

    Store& store_;
    const Clock& clock_;
    Acquire request_;
    std::optional<Boottime> doubted_since_{};  ///< When the first request left whose answer is still missing.
    std::optional<Boottime> in_line_since_{};  ///< When the last request left that was answered with a place in line.
    std::optional<Credentials> former_{};      ///< Who it was before. What it left in the store would run out anyway.
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
        if (handed_on && patience.enough && time_left(handed_on->lock) >= *patience.enough)
            return Granted{{std::move(handed_on->lock), std::nullopt}, handed_on->seen_from, asker.request().as};
    }
}

}  // namespace holdfast::client
