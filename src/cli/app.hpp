#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

/// Replaces this process by the program that has shared libraries, with the same command line. Returns only if that
/// fails, and why.
using ExecFullProgram = Error (*)(const std::vector<std::string>& args);

/// Runs one command line (without the program's name) and returns the process's exit status. The program without
/// shared libraries passes `exec_full_program`, for what needs them.
[[nodiscard]] int run(const std::vector<std::string>& args, const Clock& clock,
                      ExecFullProgram exec_full_program = nullptr);

/// The same for what `main` is given. Secrets in it are overwritten.
[[nodiscard]] int run(int argc, char** argv, ExecFullProgram exec_full_program = nullptr);

}  // namespace holdfast::cli
