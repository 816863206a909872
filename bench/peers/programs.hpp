#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace holdfast::bench {

/// Starts a program with its output thrown away. Ends the benchmark if it cannot be started.
[[nodiscard]] pid_t start(const std::vector<std::string>& command);
/// Ends the benchmark unless the program exits with 0.
void expect_success(pid_t pid);

/// How long it takes to run `command` to its end, in milliseconds: the median of `times` runs.
[[nodiscard]] double time_of(const std::vector<std::string>& command, int times);

/// Forks, and runs `work` in the child.
[[nodiscard]] pid_t fork_to(const std::function<void()>& work);

}  // namespace holdfast::bench
