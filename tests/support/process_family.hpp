#pragma once

#include <csignal>
#include <sys/types.h>
#include <vector>

namespace holdfast::tests {

/// The process and all that descend from it.
[[nodiscard]] std::vector<pid_t> family_of(pid_t root);
void signal_all(const std::vector<pid_t>& pids, int signal);

}  // namespace holdfast::tests
