#pragma once

#include "cli/command.hpp"

#include <string>

/// Texts that are made from the table of commands, so that none of them can miss a flag.
namespace holdfast::cli {

/// All commands, one line each.
[[nodiscard]] std::string overview();
/// One command with its options.
[[nodiscard]] std::string help_for(const Command& command);
/// `holdfast acquire NAME [flags]`
[[nodiscard]] std::string usage_of(const Command& command);
/// The manual page, for `man`.
[[nodiscard]] std::string manual_page();
/// A script that completes commands and flags; `shell` is bash, zsh or fish.
[[nodiscard]] std::string completion_for(std::string_view shell);

}  // namespace holdfast::cli
