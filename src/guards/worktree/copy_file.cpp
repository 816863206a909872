#include "guards/worktree/copy_file.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/files.hpp"
#include "values/sha256.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/fs.h>
#include <optional>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

constexpr std::size_t chunk = std::size_t{1} << 18;

std::unexpected<Error> failed(int error, std::string_view doing, std::string_view shown) {
    return std::unexpected(base::os_error(error, fmt::format("{} {}", doing, printable(shown))));
}

std::unexpected<Error> stopped() { return fail(Errc::lock_expired, "stopped while a file was copied"); }

/// Reads at `offset` until the buffer is full or the file ends.
ssize_t read_at(int fd, std::span<std::uint8_t> buffer, std::uint64_t offset) {
    std::size_t done = 0;
    while (done < buffer.size()) {
        const ssize_t got = pread(fd, buffer.data() + done, buffer.size() - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return static_cast<ssize_t>(done);
}

int write_at(int fd, std::span<const std::uint8_t> bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
        const ssize_t wrote = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return errno;
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
        offset += static_cast<std::uint64_t>(wrote);
    }
    return 0;
}

/// Where the next data of a sparse file begins, at `offset` or after it, and where it ends. On a file system without
/// holes the whole file is one piece.
struct Piece {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
};
Piece next_piece(int fd, std::uint64_t offset, std::uint64_t size) {
    const off_t data = lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
    if (data < 0) return errno == ENXIO ? Piece{size, size} : Piece{offset, size};
    const off_t hole = lseek(fd, data, SEEK_HOLE);
    if (hole < 0) return {offset, size};
    return {std::min(static_cast<std::uint64_t>(data), size), std::min(static_cast<std::uint64_t>(hole), size)};
}

/// False: it was asked to stop. A hole can be larger than any disk.
bool hash_zeros(Sha256& hash, std::uint64_t count, const std::stop_token& stop) {
    static constexpr std::array<std::uint8_t, 65536> zeros{};
    while (count > 0 && !stop.stop_requested()) {
        const auto some = std::min<std::uint64_t>(count, zeros.size());
        hash.update(std::span(zeros).first(some));
        count -= some;
    }
    return count == 0;
}

std::optional<std::uint64_t> size_of(int fd) {
    struct stat facts{};
    if (fstat(fd, &facts) != 0) return std::nullopt;
    return static_cast<std::uint64_t>(facts.st_size);
}

bool is_sparse(int fd, std::uint64_t size) {
    struct stat facts{};
    return fstat(fd, &facts) == 0 && static_cast<std::uint64_t>(facts.st_blocks) * 512 < size;
}

/// What belongs to the kernel or to root stays behind where we may not set it.
bool may_stay_behind(const std::string& attribute, int error, Attributed attributed) {
    if (attributed == Attributed::where_possible && (error == ENOTSUP || error == E2BIG)) return true;
    return !attribute.starts_with("user.") &&
           (error == EPERM || error == ENOTSUP || error == EACCES || error == EINVAL);
}

timespec time_of(const Moment& moment) {
    return {static_cast<time_t>(moment.seconds), static_cast<long>(moment.nanoseconds)};
}

}  // namespace

FileCopier::FileCopier(CopyFacts& facts, std::stop_token stop)
    : facts_(facts), stop_(std::move(stop)), read_(chunk), written_(chunk) {}

Result<FileCopier::Copied> FileCopier::copy(int from, int to, std::uint64_t size, std::string_view shown) {
    return run(from, to, size, shown);
}

Result<FileCopier::Copied> FileCopier::hash(int from, std::uint64_t size, std::string_view shown) {
    return run(from, -1, size, shown);
}

Result<FileCopier::Copied> FileCopier::run(int from, int to, std::uint64_t size, std::string_view shown) {
    Copied copied;
    Sha256 hash;
    bool is_cloned = false;
    if (to >= 0 && size > 0 && facts_.can_reflink) {
        is_cloned = ioctl(to, FICLONE, from) == 0;
        if (!is_cloned && errno != ENOSPC && errno != EDQUOT) facts_.can_reflink = false;
        if (is_cloned) ++facts_.reflinked;
    }
    const bool has_holes = size > 0 && is_sparse(from, size);
    std::uint64_t at = 0;
    bool is_short = false;
    while (at < size && !is_short) {
        const Piece piece = has_holes ? next_piece(from, at, size) : Piece{at, size};
        if (!hash_zeros(hash, piece.from - at, stop_)) return stopped();
        at = piece.from;
        while (at < piece.to && !is_short) {
            if (stop_.stop_requested()) return stopped();
            const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(chunk, piece.to - at));
            const ssize_t got = read_at(from, std::span(read_).first(wanted), at);
            if (got < 0) return failed(errno, "read", shown);
            const auto bytes = std::span(read_).first(static_cast<std::size_t>(got));
            is_short = bytes.size() < wanted;
            hash.update(bytes);
            if (to >= 0) {
                if (!is_cloned)
                    if (const int error = write_at(to, bytes, at); error != 0) return failed(error, "write", shown);
                if (read_at(to, std::span(written_).first(bytes.size()), at) < 0) return failed(errno, "read", shown);
                copied.is_equal = copied.is_equal && std::memcmp(read_.data(), written_.data(), bytes.size()) == 0;
            }
            at += bytes.size();
            facts_.bytes_read += bytes.size();
        }
    }
    // A file system writes the last block anew when a clone is cut, even to the size that it has, and no longer shares
    // it.
    if (to >= 0 && (has_holes || is_cloned) && size_of(to) != at && ftruncate(to, static_cast<off_t>(at)) != 0)
        return failed(errno, "write", shown);
    copied.size = at;
    copied.hash = hash.finish();
    return copied;
}

Result<void> apply_metadata(int fd, const Entry& entry, Attributed attributed) {
    const bool is_ours = entry.owner == geteuid() && entry.group == getegid();
    const bool is_given = (is_ours && geteuid() != 0) || fchown(fd, entry.owner, entry.group) == 0;
    if (!is_given && geteuid() == 0) return failed(errno, "set the owner of", entry.path);
    for (const auto& [name, value] : entry.attributes)
        if (fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) != 0 &&
            !may_stay_behind(name, errno, attributed))
            return failed(errno, "set the attribute " + printable(name) + " of", entry.path);
    // What ran with the rights of its owner must not run with ours.
    const mode_t mode = is_given ? entry.mode : entry.mode & ~static_cast<mode_t>(S_ISUID | S_ISGID);
    if (fchmod(fd, mode) != 0) return failed(errno, "set the mode of", entry.path);
    const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, time_of(entry.mtime)};
    if (futimens(fd, times.data()) != 0) return failed(errno, "set the time of", entry.path);
    return {};
}

Result<void> apply_metadata_at(int folder, const std::string& name, const Entry& entry, Attributed attributed) {
    if (fchownat(folder, name.c_str(), entry.owner, entry.group, AT_SYMLINK_NOFOLLOW) != 0 && geteuid() == 0)
        return failed(errno, "set the owner of", entry.path);
    const std::string path = fmt::format("/proc/self/fd/{}/{}", folder, name);
    for (const auto& [key, value] : entry.attributes)
        if (lsetxattr(path.c_str(), key.c_str(), value.data(), value.size(), 0) != 0 &&
            !may_stay_behind(key, errno, attributed))
            return failed(errno, "set the attribute " + printable(key) + " of", entry.path);
    const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, time_of(entry.mtime)};
    if (utimensat(folder, name.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0)
        return failed(errno, "set the time of", entry.path);
    return {};
}

Result<void> make_other(int folder, const std::string& name, const Entry& entry, Attributed attributed) {
    if (entry.kind == Kind::symlink && symlinkat(entry.target.c_str(), folder, name.c_str()) != 0)
        return failed(errno, "make the link", entry.path);
    if (entry.kind == Kind::fifo) {
        if (mkfifoat(folder, name.c_str(), 0600) != 0) return failed(errno, "make the FIFO", entry.path);
        const base::Fd made(openat(folder, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        if (!made || chmod(fmt::format("/proc/self/fd/{}", made.get()).c_str(), entry.mode) != 0)
            return failed(errno, "set the mode of", entry.path);
    }
    return apply_metadata_at(folder, name, entry, attributed);
}

Result<int> create_file(int folder, const std::string& name, std::string_view shown) {
    const int fd = openat(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) return failed(errno, "write", shown);
    return fd;
}

}  // namespace holdfast::guards::worktree
