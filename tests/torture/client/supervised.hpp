#pragma once

#include "base/fd.hpp"

#include <optional>
#include <string>
#include <vector>

namespace torture {

/// One of the programs beside this one. A long run is made from a copy of them, which a build does not replace.
[[nodiscard]] std::string program(const std::string& name);

/// Starts a program without input and output, and waits for its end. It is killed if this process dies. The exit
/// status, or nothing: a signal ended it.
[[nodiscard]] std::optional<int> run_and_wait(const std::vector<std::string>& command);

/// A lock of the kernel on a file of the run, which this process shares with whatever it starts, and that with what it
/// starts. A process that gets it exclusively knows that all of them are dead.
[[nodiscard]] holdfast::base::Fd sign_of_life(const std::string& file);

/// Whether anybody has a sign of life.
[[nodiscard]] bool anybody_lives(const std::string& file);

}  // namespace torture
