#pragma once

#include "holdfast/clock.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

/// Runs one command line (without the program's name) and returns the process's exit status.
[[nodiscard]] int run(const std::vector<std::string>& args, const Clock& clock);

}  // namespace holdfast::cli
