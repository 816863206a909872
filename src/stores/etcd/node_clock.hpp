#pragma once

#include "stores/common/batch.hpp"

#include <mutex>
#include <optional>

namespace holdfast::stores::etcd {

/// When something is so, by the clock that judges.
struct Moment {
    Instant now{};  ///< The clock shows this, or up to `resolution` more.
    std::chrono::milliseconds resolution{0};
    bool is_fresh = true;  ///< The clock was looked at for this.
};

/// The clock of the node that is asked: the `Date` of its last answer to HTTP/1.1, and what has passed since. Answers
/// to gRPC do not say what time it is.
///
/// It has whole seconds, and every node has its own. A lease must not end early for either reason:
///
/// - What begins with an answer begins at the end of that second (`begin_late`), so the lease lasts at least its ttl;
///   and what ends is judged by its beginning, so that nothing ends before the clock has reached it.
/// - Nobody takes over a lease before it has been expired for `margin`, so the clocks of two nodes may
///   differ by that much.
class NodeClock {
public:
    NodeClock(const Clock& clock, std::chrono::milliseconds margin) : clock_(clock), margin_(margin) {}

    /// What the clock shows, going by what was heard just now, and asked for at `asked_at`.
    [[nodiscard]] Moment heard(Instant date, Boottime asked_at);

    /// What the clock shows now, going by what was heard last. Absent if that does not tell.
    [[nodiscard]] std::optional<Moment> reckoned() const;

    [[nodiscard]] std::chrono::milliseconds margin() const { return margin_; }
    /// What two readings may differ by without anybody having moved a clock.
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
