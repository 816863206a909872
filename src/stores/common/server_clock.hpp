#pragma once

#include "holdfast/clock.hpp"

#include <mutex>
#include <optional>

namespace holdfast::stores {

/// When a change may be written, by the server's clock. Outside of this window its decision is out of date.
struct Window {
    Instant earliest{};
    Instant latest{};
};

/// The server's clock, computed from an earlier answer. May be used by any thread.
class ServerClock {
public:
    /// An answer said `time`, to a request that was sent at `sent`.
    void saw(Instant time, Boottime sent, Boottime received);

    /// What the clock will show when a request that is sent now arrives; never less than when it leaves. Absent if
    /// nothing recent is known.
    [[nodiscard]] std::optional<Instant> on_arrival() const;

    /// When a change that was decided at `predicted` may be written. If the server's clock is ahead of `predicted`, the
    /// lease ends before its holder believes; the window keeps that within the holder's own margin, also for the
    /// shortest lease.
    [[nodiscard]] static Window window_for(Instant predicted);

private:
    struct Seen {
        Instant time{};
        Boottime sent{};
        std::chrono::milliseconds trip{};  ///< Of the round trip.
    };
    mutable std::mutex mutex_;
    std::optional<Seen> seen_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores
