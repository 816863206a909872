#pragma once

#include "holdfast/lease.hpp"

#include <string>
#include <string_view>

/// Names of locks with wildcards: `*` stands for any letters, also `/`, and `?` for one. A `\` before one of them takes
/// its meaning away, for locks that have it in their names.
namespace holdfast::cli {

/// Whether a word of the command line means several locks. `[` and `\` alone do not: they stand in names.
[[nodiscard]] bool is_pattern(std::string_view word);

/// An empty pattern matches every name.
[[nodiscard]] bool matches(const std::string& pattern, const LockName& name);

/// What every name begins with that matches.
[[nodiscard]] std::string prefix_of(std::string_view pattern);

}  // namespace holdfast::cli
