#pragma once

#include "stores/batch/batch.hpp"
#include "stores/etcd/gateway.hpp"

#include <mutex>

namespace holdfast::stores::etcd {

/// When an answer was given, by the clock that judges.
struct Moment {
    Instant now{};  ///< The clock shows this, or up to `resolution` more.
    std::chrono::milliseconds resolution{0};
};

/// The clock of the node that answers: the `Date` of its answer, which it writes after it has read.
///
/// It has whole seconds, and every node has its own. A lease must not end early for either reason:
///
/// - What begins with an answer begins at the end of that second (`begin_late`), so the lease lasts at least its ttl;
/// and
///   what ends is judged by its beginning, so that nothing ends before the clock has reached it.
/// - Nobody takes over a lease before it has been expired for `margin`, so the clocks of two nodes may
///   differ by that much.
class NodeClock {
public:
    NodeClock(const Clock& clock, std::chrono::milliseconds margin) : clock_(clock), margin_(margin) {}

    /// Of an answer that was heard just now, to what was sent at `sent_at`.
    [[nodiscard]] Result<Moment> moment_of(const Gateway::Answer& answer, Boottime sent_at);

    /// What the clock shows now, going by the last answer. Absent if that does not tell.
    [[nodiscard]] std::optional<Moment> reckoned() const;

    [[nodiscard]] std::chrono::milliseconds margin() const { return margin_; }
    /// What two readings may differ by without anybody having moved a clock.
    [[nodiscard]] std::chrono::milliseconds tolerance(const Moment& moment) const;

private:
    struct Heard {
        Moment moment{};
        Boottime sent_at{};
        Boottime heard_at{};
    };

    const Clock& clock_;
    const std::chrono::milliseconds margin_;
    mutable std::mutex mutex_;
    std::optional<Heard> heard_{};  ///< Guarded by mutex_. The last answer.
};

/// How long it takes at least until the clock that showed `moment` can show `instant`.
[[nodiscard]] std::chrono::milliseconds time_until(Instant instant, const Moment& moment);

/// Moves leases, tickets and questions that begin at `moment` to the end of its second.
void begin_late(std::vector<Reply>& replies, std::vector<Change>& changes, const Moment& moment);

}  // namespace holdfast::stores::etcd
