#include "base/file_watch.hpp"

#include "base/await.hpp"
#include "base/os_error.hpp"

#include <cerrno>
#include <sys/inotify.h>

namespace holdfast::base {

Result<FileWatch> FileWatch::on(const std::string& path, Hears hears) {
    Fd inotify(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!inotify) return std::unexpected(os_error(errno, "watch " + path));
    constexpr std::uint32_t events = IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MODIFY |
                                     IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_DONT_FOLLOW;
    const std::uint32_t reads = hears == Hears::changes_and_reads ? IN_ACCESS : 0;
    if (inotify_add_watch(inotify.get(), path.c_str(), events | reads) < 0)
        return std::unexpected(os_error(errno, "watch " + path));
    return FileWatch(std::move(inotify));
}

bool FileWatch::wait(const Clock& clock, Deadline deadline, const std::stop_token& stop) {
    if (!await_readable(inotify_.get(), clock, deadline, stop)) return false;
    drain(inotify_.get());
    return true;
}

}  // namespace holdfast::base
