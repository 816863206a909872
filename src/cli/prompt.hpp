#pragma once

#include "cli/context.hpp"

#include <string>

namespace holdfast::cli {

/// Asks `question` on the terminal; only `y` and `yes` agree. With --yes nobody is asked. Without a
/// terminal, and without --yes, it is refused with `usage`.
[[nodiscard]] Result<bool> confirm(const Context& context, const std::string& question);

}  // namespace holdfast::cli
