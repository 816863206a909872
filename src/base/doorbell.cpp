#include "base/doorbell.hpp"

#include "base/await.hpp"
#include "base/os_error.hpp"
#include "base/ownership.hpp"
#include "base/private_mode.hpp"

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
    // Whoever owns the folder could ring without end, or have us make pipes where a link leads to.
    const auto folder = facts_of(folder_);
    if (!folder) return std::unexpected(folder.error());
    if (*folder)
        if (auto ours = expect_our_folder(**folder, folder_); !ours) return std::unexpected(ours.error());
    const std::string path = path_of(ticket);
    int made = mkfifo(path.c_str(), 0600);
    if (made != 0 && errno == ENOENT) {
        const bool is_new = mkdir(folder_.c_str(), 0700) == 0;
        if (!is_new && errno != EEXIST) return std::unexpected(os_error(errno, "make " + folder_));
        if (is_new)
            if (auto set = set_private_mode(folder_, 0700); !set) return std::unexpected(set.error());
        made = mkfifo(path.c_str(), 0600);
    }
    if (made != 0 && errno != EEXIST) return std::unexpected(os_error(errno, "make " + path));
    if (made == 0)
        if (auto set = set_private_mode(path, 0600); !set) return std::unexpected(set.error());
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
