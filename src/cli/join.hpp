#pragma once

#include "cli/context.hpp"
#include "cli/lease_environment.hpp"
#include "client/join.hpp"

#include <optional>
#include <vector>

namespace holdfast::cli {

/// True if the lease is known to be on another store.
[[nodiscard]] bool is_elsewhere(const InheritedLease& lease, const Store& store);

/// The lease of a command around this one that holds `name` on `store`, proved; absent when none of `inherited` does.
/// One that should and does not is named in a note: then the lock is to be taken like any other.
///
/// Other refusals are errors: `lock_conflict` when one of `terms.unless_held` is held, and what the store says when it
/// cannot be asked.
[[nodiscard]] Result<std::optional<client::JoinedLease>> join(Context& context, Store& store, const LockName& name,
                                                              const client::JoinTerms& terms,
                                                              const std::vector<InheritedLease>& inherited);

}  // namespace holdfast::cli
