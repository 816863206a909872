#pragma once

#include "holdfast/audit.hpp"
#include "holdfast/hold.hpp"

#include <optional>
#include <string>
#include <vector>

/// Why a lease is lost, in words that tell its holder what happened.
namespace holdfast::client {

/// A lease, and what its holder knows of the tries to renew it.
struct RenewalRecord {
    const LockName& name;
    const Lease& lease;  ///< As of the last answer.
    bool renews = true;
    std::optional<Error> last_failure{};  ///< Of the tries since the last answer.
};

/// Another renewal would bring nothing.
[[nodiscard]] bool is_at_limit(const Lease& lease);

/// Why a lease that nobody took away has come to its end: `lock_expired`.
[[nodiscard]] Error reason_of_expiry(const RenewalRecord& record, Instant now);

struct Explanation {
    HoldEventKind kind = HoldEventKind::expired;
    std::string message{};
};

/// What happened to the lease `lock_id`, told by the events that came after the holder's last one. Empty if they do not
/// tell.
[[nodiscard]] std::optional<Explanation> explain_loss(const LockName& name, const LockId& lock_id,
                                                      const std::vector<AuditEvent>& events, Instant now);

}  // namespace holdfast::client
