#pragma once

#include "holdfast/clock.hpp"

#include <chrono>

/// When to renew, and when a hold must be called lost. Pure, like the rest of the kernel.
namespace holdfast::kernel {

/// What a holder knows of its own lease, on its own boot time.
struct RenewalPlan {
    std::chrono::milliseconds granted{0};   ///< How long the last answer lasts, by the store's clock.
    std::chrono::milliseconds interval{0};  ///< Between renewals when all is well.
    Boottime sent_at{};                     ///< Just before the request left that brought the last answer.

    /// From here on the holder must act as if the lease were gone. Counted from before the request left
    /// and shortened by a margin for drift and scheduling, so it is over before the store lets anyone in.
    [[nodiscard]] Boottime deadline() const;

    /// When to renew next: on time after a success, sooner after a failure at `failed_at`.
    [[nodiscard]] Boottime next_renewal() const { return sent_at + interval; }
    [[nodiscard]] Boottime next_attempt(Boottime failed_at) const;

    /// How long one renewal call may take, so that a second one fits before the deadline.
    [[nodiscard]] std::chrono::milliseconds call_timeout() const;
};

/// The share of a lease that its holder does not use.
[[nodiscard]] std::chrono::milliseconds margin_of(std::chrono::milliseconds granted);

}  // namespace holdfast::kernel
