#pragma once

#include "holdfast/clock.hpp"

#include <mutex>
#include <optional>

namespace holdfast::stores {

/// When a change may be written, by the server's clock. Outside of it, the decision is too old.
struct Window {
    Instant earliest{};
    Instant latest{};
};

/// The server's clock, told from an earlier answer. May be used by any thread.
class ServerClock {
public:
    /// An answer said `time`, to a request that was sent at `sent`.
    void saw(Instant time, Boottime sent, Boottime received);

    /// What it shows when a request that is sent now gets there: never less than when it leaves. Absent if that cannot
    /// be told.
    [[nodiscard]] std::optional<Instant> on_arrival() const;

    /// When a change that was decided at `predicted` may be written. A clock that is ahead of it would let a lease
    /// end before its holder believes; the difference stays within the holder's own margin, also for the shortest
    /// lease.
    [[nodiscard]] static Window window_for(Instant predicted);

private:
    struct Seen {
        Instant time{};
        Boottime sent{};
        std::chrono::milliseconds trip{};  ///< There and back.
    };
    mutable std::mutex mutex_;
    std::optional<Seen> seen_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores
