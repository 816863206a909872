#pragma once

#include "config/settings.hpp"
#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"

#include <optional>
#include <string>
#include <vector>

/// How a command under leases knows of them. HOLDFAST_LOCK, HOLDFAST_LEASE and the rest speak of the lock that was
/// asked for first; the same with `_2`, `_3`… of further ones and of those of the commands around it. HOLDFAST_LEASES
/// has all of them with their stores.
namespace holdfast::cli {

struct InheritedLease {
    LockName name;
    Credentials as;
    std::optional<FencingToken> token{};
    std::optional<StoreId> store_id{};  ///< Absent where `acquire` was evaluated by a shell.
    std::string expires_at{};           ///< As a command around this one wrote it; shown, never relied on.
};

/// The leases that the environment of this process names, each once: first those of the variables without a store,
/// which a shell may have set last, then those of HOLDFAST_LEASES.
///
/// A malformed HOLDFAST_LOCK or HOLDFAST_LEASE is passed over: somebody else may have set it, and it proves nothing.
/// A malformed HOLDFAST_LEASES is `usage`: only `run` sets it, and without it a command would act on the wrong lease.
[[nodiscard]] Result<std::vector<InheritedLease>> inherited_leases();

/// Those of them on the lock `name`.
[[nodiscard]] Result<std::vector<InheritedLease>> inherited_leases(const LockName& name);

/// The environment for a child: this process's own, with exactly `leases` in it.
/// `store` replaces what the environment says of a store, unless it is empty.
[[nodiscard]] std::vector<std::string> environment_with(const std::vector<InheritedLease>& leases,
                                                        const config::StoreForChild& store);

}  // namespace holdfast::cli
