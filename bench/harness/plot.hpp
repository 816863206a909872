#pragma once

#include "harness/comparison.hpp"

namespace holdfast::bench {

/// The ratios as an SVG: a bar for each line, from the peer's 1.0 to Holdfast, and a mark at its goal.
[[nodiscard]] std::string to_svg(std::span<const Line> lines);

}  // namespace holdfast::bench
