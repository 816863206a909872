#pragma once

#include "base/jitter.hpp"
#include "holdfast/clock.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace holdfast::stores {

/// Moves the times at which a Store object looks at its watches together, so that one round trip serves many of them.
/// Each object has ticks of its own, so that processes do not look at the same time.
class PollTicks {
public:
    using milliseconds = std::chrono::milliseconds;

    explicit PollTicks(milliseconds tick = milliseconds{25}) : tick_(tick) {}

    /// `pause`, lengthened so that it ends at a tick. A short one stays as it is: it is short because something is
    /// about to happen.
    [[nodiscard]] milliseconds aligned(Boottime now, milliseconds pause) const {
        if (pause <= tick_) return pause;
        const auto end = (now + pause + phase_).time_since_epoch() % tick_;
        return end == end.zero() ? pause : pause + tick_ - end;
    }

private:
    const milliseconds tick_;
    const milliseconds phase_ = base::random_between(milliseconds{0}, tick_);
};

/// How many waiters ahead in the queue make a waiter one that is far back, which needs no short pauses.
inline constexpr std::uint64_t near_the_head = 3;

/// The pause of a waiter that is far back, so that `watches` of them cost at most about 2,000 looks a second.
[[nodiscard]] inline std::chrono::milliseconds pause_far_back(std::chrono::milliseconds pause, std::size_t watches) {
    return std::max(pause, std::chrono::milliseconds(watches / 2));
}

}  // namespace holdfast::stores
