#pragma once

#include "holdfast/store.hpp"

#include <chrono>

namespace holdfast::client {

/// `apply_one`, within `timeout`. If the outcome is unknown, sends it once more with the same timeout, if a repeat is
/// harmless. The outcome stays unknown if the store cannot be reached then.
[[nodiscard]] Reply apply_or_repeat(Store& store, const Request& request, const Clock& clock,
                                    std::chrono::milliseconds timeout);

}  // namespace holdfast::client
