#include "guards/worktree/files.hpp"

#include "base/os_error.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::unexpected<Error> failed(int error, std::string_view doing, std::string_view what) {
    return std::unexpected(base::os_error(error, fmt::format("{} {}", doing, printable(what))));
}

struct CloseFolder {
    void operator()(DIR* folder) const { closedir(folder); }
};

/// Opens a folder of ours to its owner, who may have taken the right to look into it from himself.
bool make_usable(int parent, const std::string& name) {
    const Fd place(openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return place && chmod(fmt::format("/proc/self/fd/{}", place.get()).c_str(), 0700) == 0;
}

/// Empties `folder`, and removes nothing on another file system.
Result<void> empty_folder(int folder, dev_t device, std::string_view shown) {
    const auto names = names_in(folder, shown);
    if (!names) return std::unexpected(names.error());
    for (const std::string& name : *names) {
        if (unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) continue;
        if (errno != EISDIR && errno != EPERM) return failed(errno, "remove", name);
        auto inner = open_folder_at(folder, name, name);
        if (!inner && make_usable(folder, name)) inner = open_folder_at(folder, name, name);
        if (!inner) return std::unexpected(inner.error());
        struct stat facts{};
        if (fstat(inner->get(), &facts) != 0) return failed(errno, "look at", name);
        if (facts.st_dev != device) return failed(EBUSY, "remove", name);
        // A folder of a payload may be one that its owner cannot write.
        if ((facts.st_mode & 0700) != 0700 && fchmod(inner->get(), 0700) != 0) return failed(errno, "empty", name);
        if (auto emptied = empty_folder(inner->get(), device, name); !emptied) return emptied;
        if (unlinkat(folder, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) return failed(errno, "remove", name);
    }
    return {};
}

}  // namespace

Result<Fd> open_folder(const std::string& path) {
    Fd fd(open(path.c_str(), folder_flags));
    if (!fd) return failed(errno, "open the folder", path);
    return fd;
}

Result<Fd> open_folder_at(int parent, const std::string& name, std::string_view shown) {
    Fd fd(openat(parent, name.c_str(), folder_flags));
    if (!fd) return failed(errno, "open the folder", shown);
    return fd;
}

Result<Fd> open_beneath(int root, std::string_view path) {
    Fd at(fcntl(root, F_DUPFD_CLOEXEC, 0));
    if (!at) return failed(errno, "open", path);
    std::string_view rest = path;
    while (!rest.empty()) {
        const std::string name(rest.substr(0, rest.find('/')));
        rest.remove_prefix(std::min(name.size() + 1, rest.size()));
        if (name.empty() || name == "." || name == "..") return fail(Errc::usage, "a path has a step in it");
        auto next = open_folder_at(at.get(), name, path);
        if (!next) return next;
        at = *std::move(next);
    }
    return at;
}

Result<Place> place_beneath(int root, std::string_view path) {
    const auto slash = path.rfind('/');
    auto folder = open_beneath(root, slash == std::string_view::npos ? std::string_view() : path.substr(0, slash));
    if (!folder) return std::unexpected(folder.error());
    return Place{*std::move(folder), std::string(slash == std::string_view::npos ? path : path.substr(slash + 1))};
}

Result<bool> make_folder(int parent, const std::string& name, std::string_view shown) {
    if (mkdirat(parent, name.c_str(), 0700) == 0) return true;
    if (errno == EEXIST) return false;
    return failed(errno, "make the folder", shown);
}

Result<std::optional<std::string>> read_text(int folder, const std::string& name, std::size_t most) {
    const Fd file(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file && errno == ENOENT) return std::nullopt;
    if (!file) return failed(errno, "read", name);
    std::string text;
    std::array<char, 16384> buffer{};
    for (;;) {
        const ssize_t got = read(file.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failed(errno, "read", name);
        if (got == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(got));
        if (text.size() > most) return fail(Errc::record_corrupt, printable(name) + " is far too long");
    }
}

int write_all(int fd, const void* bytes, std::size_t size) {
    const char* at = static_cast<const char*>(bytes);
    while (size > 0) {
        const ssize_t wrote = write(fd, at, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return errno;
        at += wrote;
        size -= static_cast<std::size_t>(wrote);
    }
    return 0;
}

Result<void> write_text(int folder, const std::string& name, std::string_view text) {
    // One writer at a time has the guard; what an earlier one left half written is written over.
    const std::string temporary = ".tmp-" + name;
    const Fd file(openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return failed(errno, "write", name);
    int error = write_all(file.get(), text.data(), text.size());
    if (error == 0 && fsync(file.get()) != 0) error = errno;
    if (error == 0 && renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) error = errno;
    if (error != 0) {
        // On a full disk this gives the space back.
        unlinkat(folder, temporary.c_str(), 0);
        return failed(error, "write", name);
    }
    if (fsync(folder) != 0)
        return fail(Errc::outcome_unknown, fmt::format("{} was written, and nobody knows whether it is on the disk: {}",
                                                       printable(name), base::os_message(errno)));
    return {};
}

Result<void> sync_folder(int folder, std::string_view shown) {
    if (fsync(folder) != 0) return failed(errno, "sync", shown);
    return {};
}

Result<void> sync_file_system(int folder, std::string_view shown) {
    if (syncfs(folder) != 0) return failed(errno, "sync the file system of", shown);
    return {};
}

Result<MountId> mount_of(int folder, std::string_view shown) {
    struct statx facts{};
    if (statx(folder, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &facts) != 0)
        return failed(errno, "look at", shown);
    return MountId{(facts.stx_mask & STATX_MNT_ID) != 0 ? facts.stx_mnt_id : 0,
                   makedev(facts.stx_dev_major, facts.stx_dev_minor)};
}

bool is_mount_point(int folder, const std::string& name) {
    struct statx facts{};
    if (statx(folder, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &facts) != 0) return false;
    return (facts.stx_attributes_mask & facts.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

Result<void> remove_tree(int parent, const std::string& name) {
    if (unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return {};
    if (errno != EISDIR && errno != EPERM) return failed(errno, "remove", name);
    auto folder = open_folder_at(parent, name, name);
    if (!folder && make_usable(parent, name)) folder = open_folder_at(parent, name, name);
    if (!folder) return std::unexpected(folder.error());
    struct stat facts{};
    if (fstat(folder->get(), &facts) != 0) return failed(errno, "look at", name);
    if ((facts.st_mode & 0700) != 0700 && fchmod(folder->get(), 0700) != 0) return failed(errno, "empty", name);
    if (auto emptied = empty_folder(folder->get(), facts.st_dev, name); !emptied) return emptied;
    if (unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) return failed(errno, "remove", name);
    return {};
}

Result<void> for_each_name(int folder, std::string_view shown,
                           const std::function<void(const std::string& name, unsigned char type)>& each) {
    // A descriptor of its own: reading moves its position, and closedir closes it.
    const int own = openat(folder, ".", folder_flags);
    if (own < 0) return failed(errno, "list", shown);
    const std::unique_ptr<DIR, CloseFolder> opened(fdopendir(own));
    if (!opened) {
        const int error = errno;
        close(own);
        return failed(error, "list", shown);
    }
    for (;;) {
        errno = 0;
        const dirent* entry = readdir(opened.get());
        if (entry == nullptr) break;
        const std::string name = entry->d_name;
        if (name != "." && name != "..") each(name, entry->d_type);
    }
    if (errno != 0) return failed(errno, "list", shown);
    return {};
}

Result<std::vector<std::string>> names_in(int folder, std::string_view shown) {
    std::vector<std::string> names;
    auto listed = for_each_name(folder, shown, [&](const std::string& name, unsigned char) { names.push_back(name); });
    if (!listed) return std::unexpected(listed.error());
    std::ranges::sort(names);
    return names;
}

}  // namespace holdfast::guards::worktree
