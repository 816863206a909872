#pragma once

#include <chrono>
#include <string>
#include <sys/types.h>

/// How long a test waits for what must happen, so that one that fails says what it waited for instead of being ended by
/// ctest much later.
namespace holdfast::tests {

/// Far longer than anything here takes on a busy machine.
inline constexpr std::chrono::seconds time_limit{60};

/// Whether the child `pid` ends before the time limit. It is not reaped.
[[nodiscard]] bool ends_in_time(pid_t pid);

/// Whether `fd` can be read, or is at its end, before the time limit.
[[nodiscard]] bool readable_in_time(int fd);

/// What `pid` runs, for a message. Empty if that cannot be told.
[[nodiscard]] std::string command_line_of(pid_t pid);

}  // namespace holdfast::tests
