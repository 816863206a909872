#pragma once

#include "cli/command.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// A command line, taken apart. Values are not looked at yet.
struct CommandLine {
    const Command* command = nullptr;
    std::vector<std::string> words{};  ///< What stands after the command's name.
    std::vector<std::string> tail{};   ///< What stands after `--`, for a command that runs it.
    std::map<std::string, std::vector<std::string>, std::less<>>
        given{};  ///< Options by name; a switch without a value is `on`.
};

/// Takes `args` (without the program's name) apart. Refused with `usage`, naming what may have been
/// meant. `-h` and `--help` lead to the help command, whatever else is there.
[[nodiscard]] Result<CommandLine> parse(const std::vector<std::string>& args);

/// Whether `args` ask for JSON, for errors that come before they are understood.
[[nodiscard]] bool wants_json(const std::vector<std::string>& args);

/// Whether `args` or the environment ask for `--format sh`, for errors that come before they are understood.
[[nodiscard]] bool wants_shell(const std::vector<std::string>& args);

}  // namespace holdfast::cli
