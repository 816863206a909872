#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/store.hpp"

#include <cstdint>
#include <optional>

namespace holdfast::client {

struct Verified {
    std::uint64_t events = 0;
    std::uint64_t locks = 0;
};

/// Checks the audit log of the lock `name`, or of all locks, while others go on using them.
///
/// `audit_chain_broken` if an event was changed, removed or added by anything but Holdfast, if the store has events
/// of a lock that it does not know, or if it was used and has nothing left.
[[nodiscard]] Result<Verified> verify(Store& store, const std::optional<LockName>& name, const Clock& clock);

}  // namespace holdfast::client
