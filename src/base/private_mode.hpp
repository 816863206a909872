#pragma once

#include "holdfast/error.hpp"

#include <string>
#include <sys/types.h>

namespace holdfast::base {

/// Sets the mode of a new file or folder `name` in the folder `parent`, because the umask may have removed bits that
/// its owner needs. Does nothing if the mode is right. `shown` is for errors.
[[nodiscard]] Result<void> set_private_mode(int parent, const std::string& name, mode_t mode, const std::string& shown);

/// The same, for a path.
[[nodiscard]] Result<void> set_private_mode(const std::string& path, mode_t mode);

}  // namespace holdfast::base
