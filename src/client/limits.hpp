#pragma once

#include "holdfast/request.hpp"

#include <optional>

namespace holdfast::client {

/// `usage`, if any text or list of the request is beyond its limit. Every store refuses such a request
/// too, but by then it may have created itself: a caller whose refusals must leave no trace asks here first.
[[nodiscard]] std::optional<Error> beyond_limits(const Request& request);

}  // namespace holdfast::client
