#include "base/doorbell.hpp"

#include "base/await.hpp"
#include "base/os_error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace holdfast::base {
namespace {

/// Opened for both directions by both sides: the open never blocks, and a ring at the moment when the waiter
/// goes away is no broken pipe. Empty unless it is a named pipe: anything else would always be readable.
Fd open_bell(const std::string& path) {
    Fd bell(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
    struct stat info{};
    if (bell && fstat(bell.get(), &info) == 0 && S_ISFIFO(info.st_mode)) return bell;
    return {};
}

}  // namespace

bool Doorbell::wait(const Clock& clock, Deadline deadline, const std::stop_token& stop) const {
    if (!await_readable(pipe_.get(), clock, deadline, stop)) return false;
    drain(pipe_.get());
    return true;
}

Result<Doorbell> Doorbells::hang(const LockId& ticket) const {
    const std::string path = path_of(ticket);
    int made = mkfifo(path.c_str(), 0600);
    if (made != 0 && errno == ENOENT && (mkdir(folder_.c_str(), 0700) == 0 || errno == EEXIST))
        made = mkfifo(path.c_str(), 0600);
    if (made != 0 && errno != EEXIST) return std::unexpected(os_error(errno, "make " + path));
    Fd bell = open_bell(path);
    if (!bell) return fail(Errc::store_unavailable, "cannot wait at " + path);
    return Doorbell(std::move(bell));
}

void Doorbells::ring(const LockId& ticket) const {
    const Fd bell = open_bell(path_of(ticket));
    // A bell that is full of rings is as good as rung.
    if (bell && write(bell.get(), "!", 1) < 0) return;
}

void Doorbells::take_down(const LockId& ticket) const { unlink(path_of(ticket).c_str()); }

}  // namespace holdfast::base
