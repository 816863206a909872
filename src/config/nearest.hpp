#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::config {

/// A suggestion for a misspelt `word`: the nearest of `known`, or empty when none is near.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace holdfast::config
