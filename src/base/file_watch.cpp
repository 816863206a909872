#include "base/file_watch.hpp"

#include "base/os_error.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/inotify.h>

namespace holdfast::base {

Result<int> FileWatches::add(const std::string& path, Hears hears) {
    if (!inotify_) inotify_ = Fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!inotify_) return std::unexpected(os_error(errno, "watch " + path));
    constexpr std::uint32_t events = IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MODIFY |
                                     IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_DONT_FOLLOW;
    const std::uint32_t reads = hears == Hears::changes_and_reads ? IN_ACCESS : 0;
    const int watch = inotify_add_watch(inotify_.get(), path.c_str(), events | reads);
    if (watch < 0) return std::unexpected(os_error(errno, "watch " + path));
    return watch;
}

void FileWatches::remove(int watch) { inotify_rm_watch(inotify_.get(), watch); }

FileWatches::Touched FileWatches::take_touched() {
    Touched touched;
    std::array<char, 16384> events{};
    while (inotify_) {
        const ssize_t got = read(inotify_.get(), events.data(), events.size());
        if (got <= 0) break;
        for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
            inotify_event event{};
            std::memcpy(&event, events.data() + at, sizeof event);
            at += sizeof event + event.len;
            if ((event.mask & IN_Q_OVERFLOW) != 0) touched.all = true;
            if (event.wd >= 0) touched.watches.push_back(event.wd);
            if ((event.mask & IN_IGNORED) != 0) touched.ended.push_back(event.wd);
        }
    }
    return touched;
}

}  // namespace holdfast::base
