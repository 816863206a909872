#pragma once

#include "cli/context.hpp"
#include "client/policy.hpp"
#include "json/lock.hpp"

#include <string_view>

namespace holdfast::cli {

using json::Joined;

/// Prints a grant together with its secret, in the way that --format and --json ask for.
///
/// If it cannot be written, the lease is given back: a lock whose secret nobody knows would stay held
/// until it expires.
[[nodiscard]] Result<int> hand_over(Context& context, const Outcome& outcome, const Credentials& as,
                                    Joined joined = Joined::no);

/// An Acquire under `terms`, with fresh credentials and what the options say of its holder.
[[nodiscard]] Result<Acquire> acquire_request(const Context& context, LockName name, const client::Terms& terms);

}  // namespace holdfast::cli
