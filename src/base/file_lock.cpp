#include "base/file_lock.hpp"

#include "base/os_error.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <thread>

namespace holdfast::base {
namespace {

using std::chrono::microseconds;

struct flock whole_file(short type) {
    struct flock lock{};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    return lock;
}

}  // namespace

Result<FileLock> FileLock::take(int fd, const Clock& clock, Deadline deadline) {
    // The blocking call cannot be given a deadline, and its owner may be stopped while it holds the lock.
    // The sections are well below a millisecond, so trying again soon costs little. A caller that still fails after
    // that is one of many, and a thousand that try a thousand times a second would keep the owner from finishing.
    for (microseconds pause{20};; pause = std::min(pause * 2, microseconds{20'000})) {
        struct flock lock = whole_file(F_WRLCK);
        if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
            FileLock taken(fd);
            // The process may have been stopped since, and nothing may happen after its caller's deadline.
            if (deadline.passed(clock))
                return fail(Errc::store_unavailable, "the time for this call is over; nothing was changed");
            return taken;
        }
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return std::unexpected(os_error(errno, "lock the store"));
        if (deadline.passed(clock))
            return fail(Errc::store_unavailable, "the store stayed locked by another process; nothing was changed");
        std::this_thread::sleep_for(pause);
    }
}

FileLock::~FileLock() {
    if (fd_ < 0) return;
    struct flock lock = whole_file(F_UNLCK);
    fcntl(fd_, F_OFD_SETLK, &lock);
}

}  // namespace holdfast::base
