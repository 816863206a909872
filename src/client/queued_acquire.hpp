#pragma once

#include "holdfast/async.hpp"
#include "holdfast/store.hpp"

#include <chrono>
#include <optional>
#include <vector>

namespace holdfast::client {

using holdfast::Granted;

/// What a waiter sends in order to take a lock in its turn, and what the answers mean. Sends nothing itself, so that a
/// thread can wait with it as well as a daemon that has no thread to spare.
///
/// While an answer is missing it keeps its credentials: repeating the request shows whether it was granted. But not for
/// longer than a lease lasts: the store does not remember for ever which leases have ended, and one lock_id must not
/// name two of them. A queued waiter is in the same doubt, because the lock may have been handed over to it.
class QueuedAcquire {
public:
    /// Without a ticket, the request gets one that is short enough that a dead waiter does not block the others for
    /// long. `clock` must outlive it.
    QueuedAcquire(Acquire request, const Clock& clock);

    [[nodiscard]] const Acquire& request() const { return request_; }

    /// What to send now, and until when it may be decided.
    [[nodiscard]] std::vector<Request> ask();
    [[nodiscard]] Deadline time_to_ask() const;
    /// What came of it. `sent_at`: before it left.
    [[nodiscard]] Result<Granted> answered(const Result<std::vector<Reply>>& replies, Boottime sent_at);
    /// The answer was about credentials that can no longer be used: ask again at once, with new ones.
    [[nodiscard]] bool asks_again() const { return asks_again_; }

    /// The renewal that gives a lease which was handed over its full ttl.
    [[nodiscard]] Request extension() const {
        return Renew{.name = request_.name, .as = request_.as, .ttl = request_.ttl, .sender = request_.sender};
    }

    /// What gives up the place in the queue, and a grant whose answer was lost.
    [[nodiscard]] std::vector<Request> withdrawal() const;
    /// The outcome of the whole wait: `outcome_unknown` if there may be such a grant.
    [[nodiscard]] Result<void> withdrawn(const Result<std::vector<Reply>>& replies) const;

    /// What to watch until the reason for the refusal may be gone, if the store told it.
    [[nodiscard]] std::optional<Watch> watch(const Error& obstacle) const;
    /// When to ask again although nothing was heard: to keep the place, or because a wake-up was lost.
    [[nodiscard]] std::chrono::milliseconds nap(const Error& obstacle) const;

    /// Whether a refusal with this code can be gone when it is asked again.
    [[nodiscard]] static bool is_passing(Errc code);

private:
    [[nodiscard]] Boottime end_of_doubt() const;
    [[nodiscard]] bool doubt_is_stale() const { return clock_.boottime() >= end_of_doubt(); }
    [[nodiscard]] bool is_in_line(const Error& obstacle) const;
    void rotate_credentials();

    const Clock& clock_;
    Acquire request_;
    bool asks_again_ = false;
    std::optional<Boottime> doubted_since_{};  ///< When the first request left whose answer is still missing.
    std::optional<Boottime>
        in_line_since_{};                  ///< When the last request left that was answered with a place in the queue.
    std::optional<Credentials> former_{};  ///< To be cancelled. What they left in the store would expire anyway.
};

}  // namespace holdfast::client
