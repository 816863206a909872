#pragma once

#include "holdfast/lease.hpp"

#include <chrono>
#include <optional>

namespace holdfast::base {

/// A waiter's position in the queue, as a look shows it.
enum class Standing {
    absent,  ///< It has no place in the queue (any more) and must ask again.
    behind,  ///< Another waiter is first.
    first,
};

/// How long a queued waiter sleeps before it looks by itself, because a ring may be lost and the end of a lease rings
/// nobody. Empty when its turn has come, or it must ask again.
///
/// At most a second and a quarter of the lease's ttl; `lease` is the one that is stored, live or not.
[[nodiscard]] std::optional<std::chrono::milliseconds> sleep_in_line(Standing standing,
                                                                     const std::optional<Lease>& lease, Instant now);

}  // namespace holdfast::base
