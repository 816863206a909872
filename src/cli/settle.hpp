#pragma once

#include "cli/parse.hpp"
#include "config/settings.hpp"

namespace holdfast::cli {

using config::Settings;

/// The value of every option of a command, for what that command does. Refused with `usage` or `config`, depending on
/// where the bad value stands.
[[nodiscard]] Result<Settings> settle(const CommandLine& line);

}  // namespace holdfast::cli
