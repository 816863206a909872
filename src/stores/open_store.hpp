#pragma once

#include <string_view>

namespace holdfast::stores {

/// True if the store that `url` names is a module: its driver is loaded when it is opened.
[[nodiscard]] bool is_module(std::string_view url);

}  // namespace holdfast::stores
