#pragma once

#include "holdfast/clock.hpp"

#include <chrono>

/// When to renew, and when a hold must be called lost. Pure, like the rest of the kernel.
namespace holdfast::kernel {

/// The holder's view of its lease, on its own boot time.
struct RenewalPlan {
    std::chrono::milliseconds granted{0};       ///< How long the last answer lasts, by the store's clock.
    std::chrono::milliseconds interval{0};      ///< Between renewals when all is well.
    Boottime sent_at{};                         ///< Just before the request of the last answer left.
    std::chrono::milliseconds time_to_stop{0};  ///< How long before the deadline the work is told to stop.

    /// From here on the holder must act as if the lease were gone. Counted from before the request left
    /// and shortened by a margin for drift and scheduling, so it is over before the store lets anyone in.
    [[nodiscard]] Boottime deadline() const;

    /// When to renew next: on time after a success, sooner after a failure at `failed_at`.
    [[nodiscard]] Boottime next_renewal() const { return sent_at + interval; }
    [[nodiscard]] Boottime next_attempt(Boottime failed_at) const;

    /// How long a renewal call that leaves at `now` may take, so that a second one fits in before the work is told to
    /// stop.
    [[nodiscard]] std::chrono::milliseconds call_timeout(Boottime now) const;

private:
    /// From `now` until the work is told to stop, or until the deadline if it has been.
    [[nodiscard]] std::chrono::milliseconds time_left(Boottime now) const;
};

/// The share of a lease that its holder does not use.
[[nodiscard]] std::chrono::milliseconds margin_of(std::chrono::milliseconds granted);

}  // namespace holdfast::kernel
