#pragma once

#include <functional>
#include <stop_token>
#include <thread>

namespace holdfast::base {

/// Starts a thread of the library: all signals are blocked in it, because they are for the program's own threads, and
/// tools show it as `name`, which has 15 bytes at most. Throws `std::system_error` if the process can have no more.
[[nodiscard]] std::jthread start_thread(const char* name, std::function<void(const std::stop_token&)> work);

}  // namespace holdfast::base
