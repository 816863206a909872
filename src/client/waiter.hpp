#pragma once

#include "client/queued_acquire.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/request.hpp"
#include "holdfast/store.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>

namespace holdfast::client {

/// How long to wait for a lock, and what ends the wait.
struct Patience {
    Deadline deadline{};     ///< Of the wait as a whole.
    std::stop_token stop{};  ///< Ends the wait at once.
    /// Called whenever the lock cannot be taken yet: another client is first, or the store is away.
    std::function<void(const Error& cause)> blocked{};
    /// For callers that renew at once: a lease that was handed over is taken as it is if so much of it is left. It may
    /// be as short as a place in the queue until it is renewed. Otherwise it is extended first, and lasts its ttl.
    std::optional<std::chrono::milliseconds> enough{};
};

/// How much of the lease was left when the store was asked.
[[nodiscard]] std::chrono::milliseconds time_left(const LockStatus& lock);

/// Takes the lock without waiting.
[[nodiscard]] Result<Granted> acquire_now(Store& store, const Acquire& request, const Clock& clock, Deadline deadline);

/// Takes the lock, waiting in the queue until `patience` ends.
///
/// Refused with the last `lock_conflict` when it ends; the place in the queue is then given up, and a
/// grant that came too late is given back. Other errors end the wait, except that `store_unavailable`
/// and `outcome_unknown` are tried again while time is left. When an answer has been missing for longer than the lease
/// would have lasted, that is done under a new lock_id: use `Granted::as`, not what was asked with.
[[nodiscard]] Result<Granted> acquire_in_turn(Store& store, Acquire request, const Clock& clock,
                                              const Patience& patience);

}  // namespace holdfast::client
