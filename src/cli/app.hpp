#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

/// Goes on as another program, with the same command line. Returns only if that fails, and why.
using Successor = Error (*)(const std::vector<std::string>& args);

/// Runs one command line (without the program's name) and returns the process's exit status. A program that cannot
/// do everything names its successor.
[[nodiscard]] int run(const std::vector<std::string>& args, const Clock& clock, Successor successor = nullptr);

/// The same for what `main` is given. Secrets in it are overwritten.
[[nodiscard]] int run(int argc, char** argv, Successor successor = nullptr);

}  // namespace holdfast::cli
