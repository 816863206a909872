#include "base/doorbell.hpp"

#include "base/os_error.hpp"
#include "base/ownership.hpp"
#include "base/private_mode.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/stat.h>

namespace holdfast::base {
namespace {

/// A ring: the text of the lock_id and the end of a line. The kernel writes it as a whole or not at all.
constexpr std::size_t ring_size = 37;

/// With so many bytes the pipe may have been full, so that rings were lost. It holds 64 KiB, less the unused ends of
/// pages.
constexpr std::size_t nearly_full = 60'000;

/// Opened for both directions by both sides: the open never blocks, and a ring at the moment when the waiter
/// goes away is no broken pipe. Empty unless it is a named pipe: anything else would always be readable.
Fd open_bell(const std::string& path) {
    Fd bell(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
    struct stat info{};
    if (bell && fstat(bell.get(), &info) == 0 && S_ISFIFO(info.st_mode)) return bell;
    return {};
}

/// The bytes in the pipe, up to what it can hold.
std::string content_of_pipe(int pipe) {
    std::string content;
    std::array<char, 4096> part{};
    while (content.size() < nearly_full) {
        const ssize_t got = read(pipe, part.data(), part.size());
        if (got <= 0) break;
        content.append(part.data(), static_cast<std::size_t>(got));
    }
    return content;
}

Result<void> make_folder(const std::string& folder) {
    if (mkdir(folder.c_str(), 0700) == 0) return set_private_mode(folder, 0700);
    if (errno != EEXIST) return std::unexpected(os_error(errno, "make " + folder));
    return {};
}

/// False if there is one.
Result<bool> make_pipe(const std::string& path) {
    if (mkfifo(path.c_str(), 0600) == 0) {
        if (auto set = set_private_mode(path, 0600); !set) return std::unexpected(set.error());
        return true;
    }
    if (errno != EEXIST) return std::unexpected(os_error(errno, "make " + path));
    return false;
}

/// Nobody can ring at a pipe without a name, but a ring may be in it: a process that ends a lease rings and removes the
/// bell.
bool is_silent(int pipe) {
    struct stat info{};
    int unread = 0;
    return fstat(pipe, &info) == 0 && info.st_nlink == 0 && ioctl(pipe, FIONREAD, &unread) == 0 && unread == 0;
}

}  // namespace

void Doorbells::ring(const LockId& called) const {
    const Fd bell = open_bell(path_of(called));
    // A full pipe needs no further ring.
    if (const std::string ring = called.text() + "\n"; bell && write(bell.get(), ring.data(), ring.size()) < 0) return;
}

void Doorbells::take_down(const LockId& called) const { unlink(path_of(called).c_str()); }

Result<void> Doorbell::hang(const Doorbells& bells, const LockId& called) {
    return hang(bells, called, IfThere::share);
}

Result<void> Doorbell::hang_own(const Doorbells& bells, const LockId& called) {
    return hang(bells, called, IfThere::fail);
}

Result<void> Doorbell::hang(const Doorbells& bells, const LockId& called, IfThere if_there) {
    // Refuse a folder of another user, who could ring without end, or make us create pipes where a link leads.
    const auto folder = facts_of(bells.folder());
    if (!folder) return std::unexpected(folder.error());
    // Made before a name is added to the pipe that there is, so that a new folder needs no pipe of its own.
    const auto ready = *folder ? expect_our_folder(**folder, bells.folder()) : make_folder(bells.folder());
    if (!ready) return ready;
    const std::string path = bells.path_of(called);
    if (add_name(path) || has_name(path)) return {};
    return add_pipe(path, if_there);
}

/// Gives the newest pipe one more name. Fails if its last name was removed, if it has too many, on another file system,
/// and without /proc.
bool Doorbell::add_name(const std::string& path) const {
    if (pipes_.empty()) return false;
    const std::string pipe = "/proc/self/fd/" + std::to_string(pipes_.back().get());
    return linkat(AT_FDCWD, pipe.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

/// Whether the bell hangs already.
bool Doorbell::has_name(const std::string& path) const {
    struct stat named{};
    if (pipes_.empty() || lstat(path.c_str(), &named) != 0) return false;
    return std::ranges::any_of(pipes_, [&](const Fd& pipe) {
        struct stat opened{};
        return fstat(pipe.get(), &opened) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
    });
}

Result<void> Doorbell::add_pipe(const std::string& path, IfThere if_there) {
    const auto made = make_pipe(path);
    if (!made) return std::unexpected(made.error());
    if (!*made && if_there == IfThere::fail) return fail(Errc::store_unavailable, "somebody else waits at " + path);
    Fd bell = open_bell(path);
    if (!bell) return fail(Errc::store_unavailable, "cannot wait at " + path);
    std::erase_if(pipes_, [](const Fd& pipe) { return is_silent(pipe.get()); });
    pipes_.push_back(std::move(bell));
    return {};
}

Doorbell::Rings Doorbell::take_rings() {
    Rings rings;
    for (const Fd& pipe : pipes_) {
        const std::string content = content_of_pipe(pipe.get());
        if (content.size() >= nearly_full) rings.for_all = true;
        std::string_view left = content;
        while (!left.empty()) {
            const auto called = LockId::parse(left.substr(0, ring_size - 1));
            if (!called || left.size() < ring_size || left[ring_size - 1] != '\n') {
                rings.for_all = true;
                break;
            }
            rings.called.push_back(*called);
            left.remove_prefix(ring_size);
        }
    }
    return rings;
}

std::vector<int> Doorbell::descriptors() const {
    std::vector<int> all;
    for (const Fd& pipe : pipes_) all.push_back(pipe.get());
    return all;
}

}  // namespace holdfast::base
