#pragma once

#include "holdfast/audit.hpp"
#include "holdfast/lease.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace holdfast {

/// How long a lock is usually held, by its last completed holds.
class UsualHold {
public:
    static constexpr std::size_t most_samples = 50;
    /// With fewer holds there is no answer, since a few may be chance.
    static constexpr std::size_t fewest_samples = 5;

    /// Absent if there are too few.
    [[nodiscard]] static std::optional<UsualHold> of(std::vector<std::chrono::milliseconds> times);

    [[nodiscard]] std::chrono::milliseconds p50() const { return percentile(50); }
    [[nodiscard]] std::chrono::milliseconds p95() const { return percentile(95); }
    [[nodiscard]] std::size_t samples() const { return times_.size(); }

    /// The expected rest of a hold that has lasted `held`: the median of what was left of those holds that lasted
    /// longer. A whole hold if none lasted longer.
    [[nodiscard]] std::chrono::milliseconds rest_of(std::chrono::milliseconds held) const;

    /// How long until a waiter with `ahead` other waiters before it gets the lock, counted from `lock.as_of`.
    [[nodiscard]] std::chrono::milliseconds turn_in(const LockStatus& lock, std::uint64_t ahead) const;

private:
    explicit UsualHold(std::vector<std::chrono::milliseconds> times) : times_(std::move(times)) {}
    [[nodiscard]] std::chrono::milliseconds percentile(std::size_t percent) const;

    std::vector<std::chrono::milliseconds> times_;  ///< The shortest first.
};

/// How long the lease of `lock` has been held; absent if nobody holds it.
[[nodiscard]] std::optional<std::chrono::milliseconds> time_held(const LockStatus& lock);

/// Finds completed holds in the events of one lock, the newest first.
///
/// A hold goes from its grant to the event that ended it; a lease that ran out was held until then. Renewals are passed
/// over, and a hold whose grant was pruned does not count.
class CompletedHolds {
public:
    /// `page`: the oldest first, as a store returns it. Each page is older than the one before.
    void add_older(std::span<const AuditEvent> page);

    [[nodiscard]] bool is_full() const { return times_.size() >= UsualHold::most_samples; }
    [[nodiscard]] std::optional<UsualHold> usual() const { return UsualHold::of(times_); }

private:
    void see_end(const AuditEvent& event);
    void see_begin(const AuditEvent& event);

    std::map<LockId, Instant> ends_{};  ///< Ends of leases whose grant was not read yet.
    std::vector<std::chrono::milliseconds> times_{};
};

}  // namespace holdfast
