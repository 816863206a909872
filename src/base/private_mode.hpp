#pragma once

#include "holdfast/error.hpp"

#include <string>
#include <sys/types.h>

namespace holdfast::base {

/// Gives what was just made under `name` in the folder `parent` the rights `mode`, of which the umask may have taken
/// some away: without them not even its owner can use it. What has them already is left alone. `shown` is for errors.
[[nodiscard]] Result<void> set_private_mode(int parent, const std::string& name, mode_t mode, const std::string& shown);

/// The same, for a path.
[[nodiscard]] Result<void> set_private_mode(const std::string& path, mode_t mode);

}  // namespace holdfast::base
