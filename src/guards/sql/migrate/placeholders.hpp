#pragma once

#include "holdfast/error.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::guards::migrate {

/// The value of a placeholder, if it is set.
using Placeholders = std::function<std::optional<std::string>(std::string_view name)>;

/// Puts the values of `${name}` into a script; `$${name}` stands for `${name}` itself. A name is made of letters,
/// digits, `_`, `.` and `-`, so a `${` before anything else is left as it is. Refused, with all that is missing, if one
/// is not set. `path` is for the message.
[[nodiscard]] Result<std::string> fill_in(std::string_view script, const Placeholders& value_of, std::string_view path);

}  // namespace holdfast::guards::migrate
