#pragma once

#include "holdfast/audit.hpp"
#include "holdfast/hold.hpp"

#include <optional>
#include <string>
#include <vector>

/// Words the reason why a lease was lost.
namespace holdfast::client {

/// A lease, and what its holder knows of the tries to renew it.
struct RenewalRecord {
    const LockName& name;
    const Lease& lease;  ///< As of the last answer.
    bool renews = true;
    std::optional<Error> last_failure{};  ///< Of the tries since the last answer.
};

/// Another renewal would not extend the lease.
[[nodiscard]] bool is_at_limit(const Lease& lease);

/// The reason why a lease ended that nobody took away: `lock_expired`.
[[nodiscard]] Error reason_of_expiry(const RenewalRecord& record, Instant now);

/// The loss that `refusal` shows: the store's answer to a renewal, or to a Check of the lease. Empty if it shows none:
/// the store was not reached, or refused for another reason.
[[nodiscard]] std::optional<Error> loss_told_by(const LockName& name, Error refusal);

struct Explanation {
    HoldEventKind kind = HoldEventKind::expired;
    std::string message{};
};

/// What happened to the lease `lock_id`, told by the events that came after the holder's last one. Empty if they do not
/// tell.
[[nodiscard]] std::optional<Explanation> explain_loss(const LockName& name, const LockId& lock_id,
                                                      const std::vector<AuditEvent>& events, Instant now);

}  // namespace holdfast::client
