#pragma once

#include "holdfast/clock.hpp"
#include "support/time_limit.hpp"

#include <filesystem>
#include <functional>
#include <thread>

namespace holdfast::tests {

[[nodiscard]] inline std::ptrdiff_t threads_of_this_process() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

/// Waits until `holds`. False if that takes too long.
[[nodiscard]] inline bool becomes_true(const std::function<bool()>& holds) {
    const Deadline end = Deadline::in(host_clock(), time_limit);
    while (!holds() && !end.passed(host_clock())) std::this_thread::yield();
    return holds();
}

}  // namespace holdfast::tests
