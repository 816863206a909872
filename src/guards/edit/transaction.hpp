#pragma once

#include "holdfast/edit.hpp"

#include <vector>

namespace holdfast::guards::edit {

/// Runs `write` in a transaction behind the fence, if the store says within that transaction that its lease is the
/// current one and none of `unless_held` is held. Nothing is written after an error, except after `outcome_unknown`.
[[nodiscard]] Result<void> write_in_transaction(Store& store, FencedDatabase& database,
                                                const std::vector<LockName>& unless_held, const EditWrite& write,
                                                Deadline deadline);

}  // namespace holdfast::guards::edit
