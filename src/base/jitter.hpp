#pragma once

#include <chrono>
#include <cstdint>

/// Random pauses and numbers, so that clients that conflicted once do not conflict again. Not for anything secret.
namespace holdfast::base {

/// A number from `least` to `most`, both included. May be called from any thread.
[[nodiscard]] std::int64_t random_between(std::int64_t least, std::int64_t most);
[[nodiscard]] std::chrono::milliseconds random_between(std::chrono::milliseconds least, std::chrono::milliseconds most);

}  // namespace holdfast::base
