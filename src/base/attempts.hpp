#pragma once

#include "base/real_clock.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <mutex>

namespace holdfast::base {

/// The attempts of all threads of a store to reach its server. After each failure in a row the next attempt waits
/// longer, at most half a second, with a random part: all clients of a server that comes back must not connect in the
/// same moment.
class Attempts {
public:
    /// Counts on `clock`: real time, because a server does not come back sooner under a clock that a test moves.
    explicit Attempts(const Clock& clock = real_clock()) : clock_(clock) {}

    /// Sleeps until the next attempt may be made. Fails at once if that is later than `most` from now, with the error
    /// of the last attempt: a login that was refused then would be refused now.
    [[nodiscard]] Result<void> wait(std::chrono::milliseconds most) const;
    void succeeded();
    void failed(Error why);

private:
    const Clock& clock_;
    mutable std::mutex mutex_;
    int failures_ = 0;                         ///< Guarded by mutex_. In a row.
    Boottime next_{};                          ///< Guarded by mutex_.
    Error last_{Errc::store_unavailable, ""};  ///< Guarded by mutex_.
};

}  // namespace holdfast::base
