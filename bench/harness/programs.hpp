#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace holdfast::bench {

/// Ends the benchmark: what was measured so far says nothing.
[[noreturn]] void give_up(const std::string& why);

/// Starts a program with its output thrown away. Ends the benchmark if it cannot be started.
[[nodiscard]] pid_t start(const std::vector<std::string>& command);
/// Ends the benchmark unless the program exits with 0.
void expect_success(pid_t pid);

/// How long it takes to run `command` to its end, in milliseconds: the median of `times` runs.
[[nodiscard]] double time_of(const std::vector<std::string>& command, int times);

/// How many megabytes the largest process of `command` had in memory at most.
[[nodiscard]] double peak_memory_of(const std::vector<std::string>& command);

/// What a program writes to its standard output. Ends the benchmark unless it exits with 0.
[[nodiscard]] std::string output_of(const std::vector<std::string>& command);

/// Forks, and runs `work` in the child.
[[nodiscard]] pid_t fork_to(const std::function<void()>& work);

}  // namespace holdfast::bench
