#pragma once

#include "cli/parse.hpp"
#include "config/settings.hpp"

namespace holdfast::cli {

using config::Settings;

/// Finds the value of every option of the command that `line` names. Refused with `usage` for a bad value on the
/// command line, and with `config` for one in a file or the environment.
[[nodiscard]] Result<Settings> settle(const CommandLine& line);

}  // namespace holdfast::cli
