#include "support/time_limit.hpp"

#include "base/fd.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holdfast::tests {

bool readable_in_time(int fd) {
    pollfd ready{fd, POLLIN, 0};
    return poll(&ready, 1, static_cast<int>(std::chrono::milliseconds{time_limit}.count())) != 0;
}

bool ends_in_time(pid_t pid) {
    const base::Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    // Without one there is nothing to wait with but waitpid, which has no limit.
    return process.get() < 0 || readable_in_time(process.get());
}

std::string command_line_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
    std::string words{std::istreambuf_iterator<char>(file), {}};
    std::ranges::replace(words, '\0', ' ');
    return words;
}

}  // namespace holdfast::tests
