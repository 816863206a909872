#include "base/await.hpp"

#include "base/fd.hpp"

#include <algorithm>
#include <array>
#include <poll.h>
#include <sys/eventfd.h>

namespace holdfast::base {

bool await_readable(int fd, const Clock& clock, Deadline deadline, const std::stop_token& stop) {
    const Fd stopped(stop.stop_possible() ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1);
    const std::stop_callback wake(stop, [&] { eventfd_write(stopped.get(), 1); });
    while (!deadline.passed(clock) && !stop.stop_requested()) {
        const auto slice = std::min(deadline.remaining(clock), std::chrono::milliseconds{1000});
        // A negative descriptor is passed over by poll.
        std::array ready{pollfd{fd, POLLIN, 0}, pollfd{stopped.get(), POLLIN, 0}};
        if (poll(ready.data(), ready.size(), static_cast<int>(slice.count())) > 0 && ready[0].revents != 0) return true;
    }
    return false;
}

void drain(int fd) {
    std::array<char, 4096> drained{};
    while (read(fd, drained.data(), drained.size()) > 0) {
    }
}

}  // namespace holdfast::base
