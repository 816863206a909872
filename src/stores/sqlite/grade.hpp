#pragma once

#include "holdfast/store.hpp"
#include "stores/sqlite/place.hpp"
#include "stores/sqlite/session.hpp"

#include <vector>

namespace holdfast::stores::sqlite {

/// What `doctor` says of the place, whether or not the store exists.
[[nodiscard]] std::vector<Finding> examine_place(const Place& place, const base::Promise& promise);

/// What `doctor` says of a store that is there.
[[nodiscard]] std::vector<Finding> examine_session(Session& session, const Clock& clock, Deadline deadline);

}  // namespace holdfast::stores::sqlite
