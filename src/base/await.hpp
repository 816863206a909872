#pragma once

#include "holdfast/clock.hpp"

#include <stop_token>

namespace holdfast::base {

/// Sleeps until `fd` can be read. False when `deadline` passed or `stop` was asked for. Wakes at least once
/// a second of real time to look at the clock, because timers do not count suspended time.
[[nodiscard]] bool await_readable(int fd, const Clock& clock, Deadline deadline, const std::stop_token& stop);

/// Reads `fd` until it is empty. It must not block.
void drain(int fd);

}  // namespace holdfast::base
