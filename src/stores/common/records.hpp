#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/store.hpp"

namespace holdfast::stores {

/// Reads the record of every lock, for as long as there is time: a damaged one blocks its lock, and only callers that
/// ask for that lock hear of it.
[[nodiscard]] Finding examine_records(Store& store, const Clock& clock, Deadline deadline);

}  // namespace holdfast::stores
