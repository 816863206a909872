#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/store.hpp"

#include <span>
#include <vector>

namespace holdfast::client {

/// The `store_id`s of `stores`, in their order. A store that does not exist yet is created by an empty batch, because
/// it has no id before.
///
/// Refused with `config` when two of them have the same id: they are one store under two names, or one is a copy of the
/// other. Locks on both would not exclude what they seem to exclude.
[[nodiscard]] Result<std::vector<StoreId>> identify(std::span<Store* const> stores, const Clock& clock);

}  // namespace holdfast::client
