#pragma once

#include "holdfast/clock.hpp"
#include "support/time_limit.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

namespace holdfast::tests {

[[nodiscard]] inline std::ptrdiff_t threads_of_this_process() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

/// Those that the library has started: they have names. One that was joined is there for another moment.
[[nodiscard]] inline std::ptrdiff_t threads_of_the_library() {
    std::ptrdiff_t count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::getline(std::ifstream(task.path() / "comm"), name);
        if (name.starts_with("holdfast-")) ++count;
    }
    return count;
}

/// Waits until `holds`. False if that takes too long.
[[nodiscard]] inline bool becomes_true(const std::function<bool()>& holds) {
    const Deadline end = Deadline::in(host_clock(), time_limit);
    while (!holds() && !end.passed(host_clock())) std::this_thread::yield();
    return holds();
}

}  // namespace holdfast::tests
