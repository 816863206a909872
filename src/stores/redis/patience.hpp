#pragma once

#include "holdfast/clock.hpp"

#include <algorithm>

namespace holdfast::stores::redis {

/// How long one exchange with the server may take: until the caller's deadline, and never longer than
/// `most` of real time, so that a clock that stands still cannot make a wait endless.
class Patience {
public:
    static constexpr std::chrono::milliseconds most{10'000};

    Patience(const Clock& clock, Deadline deadline, std::chrono::milliseconds limit = most)
        : clock_(clock), deadline_(deadline), real_(Deadline::in(host_clock(), limit)) {}

    [[nodiscard]] std::chrono::milliseconds left() const {
        return std::min(deadline_.remaining(clock_), real_.remaining(host_clock()));
    }
    /// For poll(2).
    [[nodiscard]] int left_ms() const { return static_cast<int>(left().count()); }

private:
    const Clock& clock_;
    Deadline deadline_;
    Deadline real_;
};

}  // namespace holdfast::stores::redis
