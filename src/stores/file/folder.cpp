#include "stores/file/folder.hpp"

#include "base/os_error.hpp"
#include "base/ownership.hpp"
#include "base/private_mode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>

namespace holdfast::stores::file {
namespace {

using base::Fd;
using base::os_error;

constexpr mode_t folder_mode = 0700;
constexpr mode_t file_mode = 0600;
constexpr int safely = O_CLOEXEC | O_NOFOLLOW;

struct DirCloser {
    void operator()(DIR* dir) const { closedir(dir); }
};

Result<void> expect_our_folder(int fd, const std::string& path) {
    const auto facts = base::facts_of(fd, path);
    return facts ? base::expect_our_folder(*facts, path) : std::unexpected(facts.error());
}

/// Reading a FIFO or a device instead of a file could block for ever, or never end. If everybody could once write to
/// the folder, a file in it may belong to another user, who could rewrite it or keep a guard locked.
Result<base::FileFacts> expect_our_file(int fd, const std::string& path) {
    auto facts = base::facts_of(fd, path);
    if (!facts) return facts;
    if (auto ours = base::expect_our_file(*facts, path); !ours) return std::unexpected(ours.error());
    return facts;
}

/// The umask may have taken bits away. Left alone when it is right, because a change of mode wakes watchers.
Result<void> expect_mode(int fd, const std::string& path) {
    struct stat info{};
    const bool right = fstat(fd, &info) == 0 && (info.st_mode & 07777) == file_mode;
    if (right || fchmod(fd, file_mode) == 0) return {};
    return std::unexpected(os_error(errno, "set the mode of " + path));
}

Result<void> sync_fd(int fd, const std::string& path, Sync sync) {
    if (sync == Sync::off || fsync(fd) == 0) return {};
    // Some file systems have no fsync for a folder; they keep entries in order by themselves.
    if (errno == EINVAL) return {};
    return std::unexpected(os_error(errno, "force " + path + " to the disk"));
}

/// Errors of rename after which the old file is certainly in place.
bool surely_unchanged(int error) {
    return error == ENOSPC || error == EDQUOT || error == EACCES || error == EPERM || error == EROFS || error == ENOENT;
}

/// False if it was there already.
Result<bool> make_folder_at(int parent, const std::string& name, const std::string& path) {
    if (mkdirat(parent, name.c_str(), folder_mode) != 0) {
        if (errno == EEXIST) return false;
        return std::unexpected(os_error(errno, "make the folder " + path));
    }
    if (auto set = base::set_private_mode(parent, name, folder_mode, path); !set) return std::unexpected(set.error());
    return true;
}

}  // namespace

Result<std::optional<Folder>> Folder::open_at(int parent, const std::string& name, std::string path, Sync sync) {
    Fd fd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | safely));
    if (!fd) {
        if (errno == ENOENT) return std::nullopt;
        if (errno == ENOTDIR || errno == ELOOP)
            return fail(Errc::store_unsafe, path + " is not a folder but a file or a symbolic link, which is refused");
        return std::unexpected(os_error(errno, "open " + path));
    }
    if (auto ours = expect_our_folder(fd.get(), path); !ours) return std::unexpected(ours.error());
    return Folder(std::move(fd), std::move(path), sync);
}

Result<std::optional<Folder>> Folder::open(const std::string& path, Sync sync) {
    return open_at(AT_FDCWD, path, path, sync);
}

Result<void> Folder::make_path(const std::string& path, Sync sync) {
    std::filesystem::path made;
    for (const auto& part : std::filesystem::path(path)) {
        const std::filesystem::path parent = made;
        made /= part;
        if (access(made.c_str(), F_OK) == 0 && made != path) continue;
        const auto is_new = make_folder_at(AT_FDCWD, made.string(), made.string());
        if (!is_new) return std::unexpected(is_new.error());
        const std::string above = parent.empty() ? "." : parent.string();
        const Fd fd(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        // We cannot sync a folder that we may enter but not read, and need not: its entries were made by others.
        if (!fd && errno == EACCES && !*is_new) continue;
        if (!fd) return std::unexpected(os_error(errno, "open " + above));
        if (auto synced = sync_fd(fd.get(), above, sync); !synced) return synced;
    }
    return {};
}

Result<std::optional<Folder>> Folder::child(const std::string& name) const {
    return open_at(fd(), name, path_of(name), sync_);
}

Result<Folder> Folder::made_child(const std::string& name) const {
    auto found = child(name);
    if (!found) return std::unexpected(found.error());
    if (*found) return std::move(**found);
    if (auto made = make_folder_at(fd(), name, path_of(name)); !made) return std::unexpected(made.error());
    found = child(name);
    if (!found) return std::unexpected(found.error());
    if (!*found) return fail(Errc::store_unavailable, path_of(name) + " was removed while it was made");
    return std::move(**found);
}

Result<std::vector<std::string>> Folder::entries() const {
    // Opened anew, because a listing has a position that must not be shared.
    const int listing = openat(fd(), ".", O_RDONLY | O_DIRECTORY | safely);
    const std::unique_ptr<DIR, DirCloser> dir(listing < 0 ? nullptr : fdopendir(listing));
    if (!dir) {
        const Error error = os_error(errno, "list " + path_);
        Fd{listing}.reset();
        return std::unexpected(error);
    }

    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(dir.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
        errno = 0;
    }
    if (errno != 0) return std::unexpected(os_error(errno, "list " + path_));
    return names;
}

Result<std::optional<Bytes>> Folder::read(const std::string& name, std::size_t limit) const {
    const std::string path = path_of(name);
    const Fd file(openat(fd(), name.c_str(), O_RDONLY | O_NONBLOCK | safely));
    if (!file && errno == ENOENT) return std::nullopt;
    if (!file) return std::unexpected(os_error(errno, "open " + path));
    if (auto ours = expect_our_file(file.get(), path); !ours) return std::unexpected(ours.error());

    Bytes bytes;
    // Most files fit into this, and a larger buffer would have to be cleared first.
    constexpr std::size_t small = 4096;
    while (bytes.size() < limit) {
        const std::size_t before = bytes.size();
        bytes.resize(before + std::min(std::max(small, before), limit - before));
        const ssize_t count = ::read(file.get(), bytes.data() + before, bytes.size() - before);
        if (count < 0 && errno != EINTR) return std::unexpected(os_error(errno, "read " + path));
        bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (count == 0) break;
    }
    return bytes;
}

Result<Fd> Folder::open_guard(const std::string& name) const {
    const std::string path = path_of(name);
    Fd file(openat(fd(), name.c_str(), O_RDWR | O_CREAT | O_NONBLOCK | safely, file_mode));
    if (!file) return std::unexpected(os_error(errno, "open " + path));
    if (auto ours = expect_our_file(file.get(), path); !ours) return std::unexpected(ours.error());
    if (auto mode = expect_mode(file.get(), path); !mode) return std::unexpected(mode.error());
    return file;
}

Result<void> Folder::fill(int file, std::uint64_t offset, ByteView bytes, const std::string& name) const {
    const std::string path = path_of(name);
    if (auto mode = expect_mode(file, path); !mode) return mode;
    while (!bytes.empty()) {
        const ssize_t count = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return std::unexpected(os_error(errno, "write " + path));
        bytes = bytes.subspan(static_cast<std::size_t>(count));
        offset += static_cast<std::uint64_t>(count);
    }
    return {};
}

Result<void> Folder::write(const std::string& name, ByteView bytes) const {
    // O_EXCL rules out writing to another user's file or through a link. The file of an interrupted writer is removed.
    const auto make = [&] { return Fd(openat(fd(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | safely, file_mode)); };
    Fd file = make();
    if (!file && errno == EEXIST) {
        if (unlinkat(fd(), name.c_str(), 0) != 0 && errno != ENOENT)
            return std::unexpected(os_error(errno, "remove " + path_of(name)));
        file = make();
    }
    if (!file) return std::unexpected(os_error(errno, "make " + path_of(name)));
    auto filled = fill(file.get(), 0, bytes, name);
    if (filled) filled = sync_fd(file.get(), path_of(name), sync_);
    // A full disk gets its space back. If this fails too, the next writer removes the file.
    if (!filled) unlinkat(fd(), name.c_str(), 0);
    return filled;
}

Result<void> Folder::replace(const std::string& name, ByteView bytes) const {
    const std::string temporary = name + ".tmp";
    if (auto written = write(temporary, bytes); !written) return written;
    if (renameat(fd(), temporary.c_str(), fd(), name.c_str()) != 0) {
        const int error = errno;
        if (surely_unchanged(error)) return std::unexpected(os_error(error, "replace " + path_of(name)));
        return fail(Errc::outcome_unknown,
                    fmt::format("{} may or may not have been replaced: {}", path_of(name), base::os_message(error)));
    }
    // Readers see the new content from here on, so an error can no longer be taken as "nothing changed".
    if (auto synced = sync(); !synced)
        return fail(Errc::outcome_unknown, fmt::format("{} was replaced, but perhaps not for good", path_of(name)));
    return {};
}

Result<void> Folder::write_end(const std::string& name, std::uint64_t offset, ByteView bytes) const {
    const Fd file(openat(fd(), name.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | safely, file_mode));
    if (!file) return std::unexpected(os_error(errno, "open " + path_of(name)));
    const auto facts = expect_our_file(file.get(), path_of(name));
    if (!facts) return std::unexpected(facts.error());
    if (facts->names > 1) return write_end_of_copy(name, offset, bytes);
    if (auto filled = fill(file.get(), offset, bytes, name); !filled) return filled;
    // Cuts off the rest of a longer write that was interrupted.
    if (ftruncate(file.get(), static_cast<off_t>(offset + bytes.size())) != 0)
        return std::unexpected(os_error(errno, "cut " + path_of(name)));
    return sync_fd(file.get(), path_of(name), sync_);
}

Result<void> Folder::write_end_of_copy(const std::string& name, std::uint64_t offset, ByteView bytes) const {
    auto whole = read(name, static_cast<std::size_t>(offset));
    if (!whole) return std::unexpected(whole.error());
    if (!*whole || (*whole)->size() != offset)
        return fail(Errc::store_unavailable, path_of(name) + " was cut just now; nothing was changed");
    (*whole)->insert((*whole)->end(), bytes.begin(), bytes.end());
    return replace(name, **whole);
}

Result<void> Folder::sync() const { return sync_fd(fd(), path_, sync_); }

Result<void> Folder::sync_with_parent() const {
    if (auto synced = sync(); !synced) return synced;
    const Fd parent(openat(fd(), "..", O_RDONLY | O_DIRECTORY | safely));
    if (!parent) return std::unexpected(os_error(errno, "open the folder above " + path_));
    return sync_fd(parent.get(), path_ + "/..", sync_);
}

}  // namespace holdfast::stores::file
