#pragma once

#include "stores/common/batch.hpp"

#include <mutex>
#include <optional>

namespace holdfast::stores::etcd {

/// A time by the clock that judges.
struct Moment {
    Instant now{};  ///< The clock shows this, or up to `resolution` more.
    std::chrono::milliseconds resolution{0};
    bool is_fresh = true;  ///< The clock was read for this.
};

/// The clock of the node that is asked: the `Date` of its last answer to HTTP/1.1, and the time since then. gRPC
/// answers have no date.
///
/// It has whole seconds, and every node has its own. A lease must not end early for either reason:
///
/// - A lease begins at the end of the second of its grant (`begin_late`), so it lasts at least its ttl; and its end is
///   judged by the beginning of the present second, so that it never ends early.
/// - Nobody takes over a lease before it has been expired for `margin`, so the clocks of two nodes may
///   differ by that much.
class NodeClock {
public:
    /// It shows whole seconds.
    static constexpr std::chrono::milliseconds resolution{1000};

    NodeClock(const Clock& clock, std::chrono::milliseconds margin) : clock_(clock), margin_(margin) {}

    /// The time from an answer that arrived just now, to a request that was sent at `asked_at`.
    [[nodiscard]] Moment heard(Instant date, Boottime asked_at);

    /// The present time, computed from the last answer. Absent if that is too old.
    [[nodiscard]] std::optional<Moment> reckoned() const;

    [[nodiscard]] std::chrono::milliseconds margin() const { return margin_; }
    /// How much two readings may differ although no clock was moved.
    [[nodiscard]] std::chrono::milliseconds tolerance(const Moment& moment) const;

private:
    struct Heard {
        Instant date{};
        Boottime asked_at{};
        Boottime heard_at{};
    };

    const Clock& clock_;
    const std::chrono::milliseconds margin_;
    mutable std::mutex mutex_;
    std::optional<Heard> heard_{};  ///< Guarded by mutex_.
};

/// How long it takes at least until the clock that showed `moment` can show `instant`.
[[nodiscard]] std::chrono::milliseconds time_until(Instant instant, const Moment& moment);

/// Moves leases, tickets and questions that begin at `moment` to the end of its second.
void begin_late(std::vector<Reply>& replies, std::vector<Change>& changes, const Moment& moment);

}  // namespace holdfast::stores::etcd
