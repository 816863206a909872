#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <mutex>

namespace holdfast::base {

/// The attempts of all threads of a store to reach its server. The more of them have failed in a row, the longer the
/// next one waits, half a second at most, and not all equally long: a server that comes back must not meet all its
/// clients in the same moment.
class Attempts {
public:
    /// Counts on `clock`, which is real time except in tests: a server does not come back sooner in theirs.
    explicit Attempts(const Clock& clock = host_clock()) : clock_(clock) {}

    /// Sleeps until the next attempt may be made. Fails at once if that is later than `most` from now, with what the
    /// last attempt said: who was refused then would be refused now.
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
