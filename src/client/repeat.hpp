#pragma once

#include "holdfast/store.hpp"

#include <chrono>

namespace holdfast::client {

/// `apply_one`, within `patience`. If nobody knows what came of it, it is sent once more with as much time, where that
/// is harmless. What may have been done stays unknown if the store cannot be reached for that.
[[nodiscard]] Reply apply_or_repeat(Store& store, const Request& request, const Clock& clock,
                                    std::chrono::milliseconds patience);

}  // namespace holdfast::client
