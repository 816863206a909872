#pragma once

#include "holdfast/error.hpp"

#include <string_view>

namespace holdfast::base {

/// Loads `holdfast-KIND-NAME.so`, once, and gives the address of its symbol `entry`. It stays for the life of the
/// process. Modules are shared objects whose drivers are large: a command that does not need them does not pay for
/// them.
[[nodiscard]] Result<void*> load_module(std::string_view kind, std::string_view name, const char* entry);

/// Only modules of the same build fit.
[[nodiscard]] Error module_of_another_version(std::string_view file);

}  // namespace holdfast::base
