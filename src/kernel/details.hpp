#pragma once

#include "holdfast/lease.hpp"
#include "holdfast/request.hpp"
#include "kernel/record.hpp"
#include "values/hex.hpp"

#include <algorithm>
#include <map>
#include <span>
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

/// `details`, and through a daemon who sent the change. `holder`: whom the event is about.
[[nodiscard]] inline Details with_sender(Details details, const Sender& sender, const Holder& holder) {
    if (!sender.address.empty()) details.emplace("address", sender.address);
    if (!sender.user.empty() && sender.user != holder.user) details.emplace("by", sender.user);
    return details;
}

/// Of a grant at `now` that follows a lease which ran out, or was stale and ends with the grant.
[[nodiscard]] inline Details taken_from(const Lease& previous, Instant now) {
    Details details = from(previous);
    details.emplace("expired_at", to_rfc3339(std::min(previous.expires_at, now)));
    if (previous.expires_at > now) details.emplace("stale_since", to_rfc3339(previous.renewed_at));
    return details;
}

/// Of a repair. The bytes are there in hexadecimal, but for the end of a record that was damaged by being made long.
[[nodiscard]] inline Details details_of(const Damage& damage) {
    constexpr std::size_t most_bytes = 32768;
    const std::size_t kept = std::min(damage.bytes.size(), most_bytes);
    Details details{{"what", damage.what}, {"damaged", to_hex(std::span(damage.bytes).first(kept))}};
    if (kept < damage.bytes.size()) details.emplace("damaged_size", std::to_string(damage.bytes.size()));
    return details;
}

}  // namespace holdfast::kernel
