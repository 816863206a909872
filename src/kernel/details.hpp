#pragma once

#include "holdfast/lease.hpp"

#include <map>
#include <string>

/// What audit events tell beside their fields.
namespace holdfast::kernel {

using Details = std::map<std::string, std::string>;

/// Of an event that ends the lease of somebody else.
[[nodiscard]] inline Details from(const Lease& lease) {
    return {{"from_holder", lease.holder.text},
            {"from_lock_id", lease.lock_id.text()},
            {"from_token", std::to_string(lease.token.value)}};
}

/// Of a grant that follows a lease which ran out.
[[nodiscard]] inline Details taken_from(const Lease& previous) {
    Details details = from(previous);
    details.emplace("expired_at", to_rfc3339(previous.expires_at));
    return details;
}

}  // namespace holdfast::kernel
