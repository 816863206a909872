#pragma once

#include "holdfast/store.hpp"
#include "values/usual_hold.hpp"

#include <optional>

namespace holdfast::client {

/// How long the lock is usually held, from the newest part of its audit log. Absent when there are too few holds in it,
/// and when the log cannot be read: this is only information, and never a reason to fail.
[[nodiscard]] std::optional<UsualHold> usual_hold(Store& store, const LockStatus& lock, Deadline deadline);

}  // namespace holdfast::client
