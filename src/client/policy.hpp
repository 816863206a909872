#pragma once

#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::client {

/// The configured terms of the locks whose names match a pattern.
struct Policy {
    std::string match;                               ///< `*` stands for any text without `/`, `**` for any text.
    std::optional<std::chrono::milliseconds> ttl{};  ///< When the caller names none.
    std::optional<std::chrono::milliseconds> longest_ttl{};  ///< More is refused.
    std::optional<std::chrono::milliseconds> longest_hold{};
    std::optional<bool> renew{};
    std::optional<std::chrono::milliseconds> renew_interval{};
    std::optional<std::chrono::milliseconds> wait{};  ///< When the caller names none. 0: fail fast.
    std::optional<bool> may_wait{};                   ///< False: a caller that wants to wait is refused.
    /// A lease that was not renewed for so long may be taken over while it lives. Absent: none may.
    std::optional<std::chrono::milliseconds> stale_after{};
    std::optional<bool> may_unlock{};  ///< Whether `unlock` may end a lease that lives.
    /// Names that exclude it. The first `*` of one stands for what the first `*` of `match` matched, and so on.
    std::vector<std::string> unless_held{};
};

/// What the caller asked for.
struct Wish {
    std::optional<std::chrono::milliseconds> ttl{};
    std::optional<std::chrono::milliseconds> max_hold{};
    std::optional<std::chrono::milliseconds> wait{};  ///< In the queue.
    bool wait_is_usual = false;  ///< The wait is the caller's default, and a policy with may_wait = false overrides it.
    std::vector<LockName> unless_held{};
    bool renews = false;  ///< The request is a renewal.
};

/// What it gets.
struct Terms {
    Ttl ttl;
    std::optional<std::chrono::milliseconds> longest_ttl{};  ///< Also limits the requests of others.
    std::optional<std::chrono::milliseconds> max_hold{};
    std::chrono::milliseconds wait{0};
    bool renew = true;
    std::optional<std::chrono::milliseconds> renew_interval{};
    std::optional<std::chrono::milliseconds> stale_after{};
    std::vector<LockName> unless_held{};
};

inline constexpr std::chrono::milliseconds default_ttl{30'000};

/// The terms for `name`, by the first policy that matches it. `usage` when the wish goes beyond them, `config` when
/// the policy contradicts itself.
[[nodiscard]] Result<Terms> terms_for(const LockName& name, const std::vector<Policy>& policies, const Wish& wish);

/// What the first policy that matches `name` says of ending its live leases; empty if none does.
[[nodiscard]] std::optional<bool> may_unlock(const LockName& name, const std::vector<Policy>& policies);

/// What each `*` of `pattern` stands for in `text`; empty optional if it does not match.
[[nodiscard]] std::optional<std::vector<std::string>> match_name(std::string_view pattern, std::string_view text);

}  // namespace holdfast::client
