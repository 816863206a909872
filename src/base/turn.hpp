#pragma once

#include "holdfast/lease.hpp"

#include <chrono>
#include <optional>

namespace holdfast::base {

/// How a waiter stands in the queue, as a store finds it when it looks.
enum class Standing {
    absent,  ///< Has no place, or no longer: it must ask again.
    behind,  ///< Somebody else is first.
    first,
};

/// How long a waiter in line sleeps before it looks by itself, because a ring may be lost and a lease that
/// runs out rings nobody. Empty when its turn has come, or it must ask again.
///
/// At most a second and a quarter of the lease's ttl; `lease` is the one that is stored, live or not.
[[nodiscard]] std::optional<std::chrono::milliseconds> sleep_in_line(Standing standing,
                                                                     const std::optional<Lease>& lease, Instant now);

}  // namespace holdfast::base
