#pragma once

#include "client/policy.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::config {

/// What a policy in holdfast.toml can say.
inline constexpr std::array<std::string_view, 11> policy_keys{
    "match",       "ttl",  "longest_ttl", "longest_hold", "renew",      "renew_interval",
    "stale_after", "wait", "may_wait",    "may_unlock",   "unless_held"};

/// Puts one value of a policy into the member that it is for. The reason, if it does not fit.
[[nodiscard]] std::optional<std::string> set_policy(client::Policy& policy, const std::string& key,
                                                    const std::vector<std::string>& texts);

}  // namespace holdfast::config
