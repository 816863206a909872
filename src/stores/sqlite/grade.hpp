#pragma once

#include "holdfast/store.hpp"
#include "stores/sqlite/checked_store.hpp"
#include "stores/sqlite/place.hpp"

#include <vector>

namespace holdfast::stores::sqlite {

/// What `doctor` says of the place, whether or not the store exists.
[[nodiscard]] std::vector<Finding> examine_place(const Place& place, const base::Promise& promise);

/// What `doctor` says of a store that is there.
[[nodiscard]] std::vector<Finding> examine_session(CheckedStore& store, const Clock& clock, Deadline deadline);

}  // namespace holdfast::stores::sqlite
