#pragma once

#include "holdfast/clock.hpp"

#include <atomic>
#include <optional>
#include <signal.h>
#include <string>
#include <sys/types.h>
#include <vector>

namespace holdfast::guards::run {

/// A program to start, with everything that its start needs.
struct Launch {
    std::vector<std::string> command;
    std::vector<std::string> environment;     ///< `NAME=value`, the whole of it.
    sigset_t signal_mask{};                   ///< What the child starts with.
    int terminal = -1;                        ///< Handed to the child's group, if any.
    std::atomic<pid_t>* announce = nullptr;   ///< Told the child's group before it runs.
    std::vector<int> inherited{};             ///< Descriptors that the child has, too.
    Boottime start_before = Boottime::max();  ///< From then on it is not started: the error is ETIME.
};

struct Started {
    pid_t pid = -1;
    int error = 0;  ///< Of the exec: the program was not found or cannot be run, or it was too late.
};

/// Starts `launch` as the leader of its own process group. With `error`, nothing is running.
[[nodiscard]] Started spawn(const Launch& launch);

}  // namespace holdfast::guards::run
