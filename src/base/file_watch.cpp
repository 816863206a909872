#include "base/file_watch.hpp"

#include "base/os_error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

namespace holdfast::base {

Result<FileWatch> FileWatch::on(const std::string& path) {
    Fd inotify(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!inotify) return std::unexpected(os_error(errno, "watch " + path));
    constexpr std::uint32_t events = IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MODIFY |
                                     IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_DONT_FOLLOW;
    if (inotify_add_watch(inotify.get(), path.c_str(), events) < 0)
        return std::unexpected(os_error(errno, "watch " + path));
    return FileWatch(std::move(inotify));
}

bool FileWatch::wait(const Clock& clock, Deadline deadline, const std::stop_token& stop) {
    const Fd stopped(stop.stop_possible() ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1);
    const std::stop_callback wake(stop, [&] { eventfd_write(stopped.get(), 1); });
    while (!deadline.passed(clock) && !stop.stop_requested()) {
        const auto slice = std::min(deadline.remaining(clock), std::chrono::milliseconds{1000});
        // A negative descriptor is passed over by poll.
        std::array ready{pollfd{inotify_.get(), POLLIN, 0}, pollfd{stopped.get(), POLLIN, 0}};
        if (poll(ready.data(), ready.size(), static_cast<int>(slice.count())) <= 0 || ready[0].revents == 0) continue;
        std::array<char, 4096> drained{};
        while (read(inotify_.get(), drained.data(), drained.size()) > 0) {
        }
        return true;
    }
    return false;
}

}  // namespace holdfast::base
