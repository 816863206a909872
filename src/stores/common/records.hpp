#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/store.hpp"

namespace holdfast::stores {

/// Reads the record of every lock until the deadline. A damaged record blocks its lock, and without this check only a
/// request for that lock would find it.
[[nodiscard]] Finding examine_records(Store& store, const Clock& clock, Deadline deadline);

}  // namespace holdfast::stores
