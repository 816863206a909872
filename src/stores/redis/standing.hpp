#pragma once

#include "holdfast/store.hpp"
#include "stores/redis/remote.hpp"

namespace holdfast::stores::redis {

/// What a server says of itself, and what follows for the promise.
struct Standing {
    Grade grade = Grade::c;
    std::vector<std::string> reasons{};
    std::vector<Finding> findings{};
};

/// Asks the server. Refused with `store_unsafe` where no grant could be kept at all.
[[nodiscard]] Result<Standing> standing_of(Pool& pool, Deadline deadline);

}  // namespace holdfast::stores::redis
