#pragma once

#include "measures/measures.hpp"

namespace holdfast::bench {

/// What one client reaches on the store at `url`, and how long it waits for a pair, while somebody else removes every
/// old event of that store. `title` says which store it is.
[[nodiscard]] std::vector<Line> measure_beside_pruning(const Site& site, const std::string& title,
                                                       const std::string& url);

}  // namespace holdfast::bench
