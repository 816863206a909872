#include "base/ownership.hpp"

#include "base/os_error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace holdfast::base {
namespace {

Result<std::optional<FileFacts>> look(int fd, const char* path, int flags, const std::string& shown) {
    struct statx found{};
    if (statx(fd, path, flags, STATX_BASIC_STATS, &found) != 0) {
        if (errno == ENOENT) return std::nullopt;
        return std::unexpected(os_error(errno, "look at " + shown));
    }
    return FileFacts{.device = makedev(found.stx_dev_major, found.stx_dev_minor),
                     .inode = found.stx_ino,
                     .mode = found.stx_mode,
                     .owner = found.stx_uid,
                     .group = found.stx_gid,
                     .names = found.stx_nlink,
                     .size = found.stx_size,
                     .is_mounted = (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0};
}

std::unexpected<Error> unsafe(const std::string& path, std::string_view why) {
    return fail(Errc::store_unsafe, fmt::format("{} {}", path, why));
}

Result<void> expect_owner(const FileFacts& facts, const std::string& path, std::string_view remedy) {
    if (facts.owner == geteuid() || facts.owner == 0) return {};
    return unsafe(path, fmt::format("belongs to user {}, and you are user {}; {}", facts.owner, geteuid(), remedy));
}

Result<void> expect_nobody_else_writes(const FileFacts& facts, const std::string& path) {
    if ((facts.mode & (S_IWGRP | S_IWOTH)) == 0) return {};
    return unsafe(path, fmt::format("can be written by others (mode {:04o}); take the right away with chmod go-w",
                                    facts.mode & 07777));
}

}  // namespace

Result<std::optional<FileFacts>> facts_of(const std::string& path) {
    return look(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, path);
}

Result<FileFacts> facts_of(int fd, const std::string& path) {
    const auto found = look(fd, "", AT_EMPTY_PATH, path);
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::unexpected(os_error(ENOENT, "look at " + path));
    return **found;
}

Result<void> expect_our_file(const FileFacts& facts, const std::string& path) {
    if (S_ISLNK(facts.mode))
        return unsafe(path, "is a symbolic link, which is refused; remove it, or name the file itself");
    if (!S_ISREG(facts.mode)) return unsafe(path, "is not a plain file; remove it");
    if (auto ours = expect_owner(facts, path, "find out who put it there, and remove it"); !ours) return ours;
    return expect_nobody_else_writes(facts, path);
}

Result<void> expect_our_folder(const FileFacts& facts, const std::string& path) {
    if (!S_ISDIR(facts.mode)) return unsafe(path, "is not a folder; remove it");
    if (auto ours = expect_owner(facts, path, "choose a folder of your own"); !ours) return ours;
    return expect_nobody_else_writes(facts, path);
}

Result<void> expect_safe_place(const std::string& folder) {
    const auto found = look(AT_FDCWD, folder.c_str(), 0, folder);
    if (!found) return std::unexpected(found.error());
    if (!*found || !S_ISDIR((*found)->mode)) return {};
    const FileFacts& facts = **found;
    // The owner of a folder can replace its entries in spite of a sticky bit.
    if (auto ours = expect_owner(facts, folder, "choose a folder of your own"); !ours) return ours;
    if ((facts.mode & S_ISVTX) != 0) return {};
    if ((facts.mode & S_IWOTH) != 0)
        return unsafe(folder, "lets anybody swap the files in it; take the right away with chmod o-w");
    // A group with the number of its user is that user's alone; that is how Linux distributions number them.
    if ((facts.mode & S_IWGRP) != 0 && facts.group != facts.owner)
        return unsafe(folder, fmt::format("lets everybody in group {} swap the files in it; take the right away with "
                                          "chmod g-w",
                                          facts.group));
    return {};
}

bool may_write(const std::string& path) { return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0; }

}  // namespace holdfast::base
