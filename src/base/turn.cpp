#include "base/turn.hpp"

#include <algorithm>

namespace holdfast::base {

using std::chrono::milliseconds;

std::optional<milliseconds> sleep_in_line(Standing standing, const std::optional<Lease>& lease, Instant now) {
    if (standing == Standing::absent) return std::nullopt;
    const bool open = !lease || lease->expires_at <= now;
    if (open && standing == Standing::first) return std::nullopt;
    // An open lock is taken within milliseconds, unless the first waiter has died or was not notified.
    if (open) return milliseconds{250};
    const milliseconds most = std::clamp(lease->ttl / 4, milliseconds{20}, milliseconds{1000});
    // Only the first waiter wakes when the lease runs out; the others look later.
    return standing == Standing::first ? std::min(most, lease->expires_at - now) : most;
}

}  // namespace holdfast::base
