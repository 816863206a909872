#pragma once

#include "holdfast/lease.hpp"

#include <optional>
#include <string>
#include <vector>

/// How a command under a lease knows of it: HOLDFAST_LOCK, HOLDFAST_LEASE and the rest for the lock that
/// was asked for last, the same with `_2`, `_3`… for further ones and for those of the commands around it.
namespace holdfast::cli {

struct InheritedLease {
    LockName name;
    Credentials as;
    std::string token{};
    std::string expires_at{};
};

/// The leases that the environment of this process names. What is malformed is passed over: somebody else
/// may have set it, and it proves nothing.
[[nodiscard]] std::vector<InheritedLease> inherited_leases();

/// The environment for a child that has `leases`: this process's own, with exactly those leases in it.
/// `store` replaces HOLDFAST_STORE; without a value the variable is as it was, or gone if `hide_store`.
[[nodiscard]] std::vector<std::string> environment_with(const std::vector<InheritedLease>& leases,
                                                        const std::optional<std::string>& store, bool hide_store);

}  // namespace holdfast::cli
