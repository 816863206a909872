#include "guards/worktree/walker.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/files.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <dirent.h>
#include <fcntl.h>
#include <functional>
#include <sys/xattr.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

Error cannot(int error, std::string_view doing, std::string_view path) {
    return base::os_error(error, fmt::format("{} {}", doing, path.empty() ? "the worktree" : printable(path)));
}

Error moved(std::string_view path) {
    return {Errc::consistency_unavailable, fmt::format("{} changed while it was read", printable(path))};
}

Kind kind_of(mode_t mode) {
    switch (mode & S_IFMT) {
        case S_IFDIR: return Kind::folder;
        case S_IFLNK: return Kind::symlink;
        case S_IFIFO: return Kind::fifo;
        case S_IFSOCK: return Kind::socket;
        case S_IFBLK: return Kind::block_device;
        case S_IFCHR: return Kind::character_device;
        default: return Kind::file;
    }
}

std::string below(const std::string& folder, const std::string& name) {
    return folder.empty() ? name : folder + "/" + name;
}

/// Reads the list of names and then each value, with calls that are bound to one thing.
template <class List, class Get>
Result<Attributes> read_attributes(std::string_view shown, List list, Get get) {
    std::string names(1024, '\0');
    for (;;) {
        const ssize_t size = list(names.data(), names.size());
        if (size < 0 && errno == ERANGE && names.size() < XATTR_LIST_MAX) {
            names.resize(names.size() * 4);
            continue;
        }
        if (size < 0 && (errno == ENOTSUP || errno == ENOSYS || errno == ENODATA)) return Attributes{};
        if (size < 0) return std::unexpected(cannot(errno, "read the attributes of", shown));
        names.resize(static_cast<std::size_t>(size));
        break;
    }
    Attributes attributes;
    for (std::size_t at = 0; at < names.size(); at += attributes.back().first.size() + 1) {
        std::string name(names.c_str() + at);
        std::string value(256, '\0');
        ssize_t size = get(name.c_str(), value.data(), value.size());
        if (size < 0 && errno == ERANGE) {
            value.resize(XATTR_SIZE_MAX);
            size = get(name.c_str(), value.data(), value.size());
        }
        if (size < 0) return std::unexpected(cannot(errno, "read the attributes of", shown));
        value.resize(static_cast<std::size_t>(size));
        attributes.emplace_back(std::move(name), std::move(value));
    }
    std::ranges::sort(attributes);
    return attributes;
}

}  // namespace

Entry entry_of(const struct stat& facts) {
    Entry entry;
    entry.kind = kind_of(facts.st_mode);
    entry.mode = facts.st_mode & 07777;
    entry.owner = facts.st_uid;
    entry.group = facts.st_gid;
    entry.mtime = moment_of(facts.st_mtim);
    if (entry.kind == Kind::file) entry.size = static_cast<std::uint64_t>(facts.st_size);
    if (entry.kind == Kind::block_device || entry.kind == Kind::character_device) entry.device = facts.st_rdev;
    entry.identity = {facts.st_dev, facts.st_ino, moment_of(facts.st_ctim)};
    return entry;
}

Result<std::string> target_of(int folder, const std::string& name) {
    std::array<char, PATH_MAX> buffer{};
    const ssize_t size = readlinkat(folder, name.c_str(), buffer.data(), buffer.size());
    if (size < 0) return std::unexpected(cannot(errno, "read the link", name));
    return std::string(buffer.data(), static_cast<std::size_t>(size));
}

Result<Attributes> attributes_of(int fd, std::string_view shown) {
    return read_attributes(
        shown, [&](char* list, std::size_t size) { return flistxattr(fd, list, size); },
        [&](const char* name, char* value, std::size_t size) { return fgetxattr(fd, name, value, size); });
}

Result<Attributes> attributes_at(int folder, const std::string& name, std::string_view shown) {
    // There are no calls that take a folder and a name. The last step is not followed.
    const std::string path = fmt::format("/proc/self/fd/{}/{}", folder, name);
    return read_attributes(
        shown, [&](char* list, std::size_t size) { return llistxattr(path.c_str(), list, size); },
        [&](const char* key, char* value, std::size_t size) { return lgetxattr(path.c_str(), key, value, size); });
}

Walker::Walker(int root, WalkOptions options) : root_(root), options_(std::move(options)) {}
Walker::~Walker() = default;

/// Whether the exclusion list leaves out `name` in the folder at `folder`.
Result<bool> Walker::leaves_out(int folder, const std::string& path, const std::string& name,
                                unsigned char type) const {
    if (type == DT_UNKNOWN) {
        struct stat facts{};
        if (fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno == ENOENT) return false;
            return std::unexpected(cannot(errno, "look at", path));
        }
        type = S_ISDIR(facts.st_mode) ? DT_DIR : DT_REG;
    }
    const bool is_folder = type == DT_DIR;
    if (options_.exclusions->leaves_out(path, is_folder ? Exclusions::Thing::folder : Exclusions::Thing::other))
        return true;
    if (!is_folder) return false;
    const base::Fd inner(openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return inner && is_cache(inner.get());
}

/// Lists a folder, without what is left out.
Result<void> Walker::enter(Found& found, base::Fd fd) {
    std::vector<std::string> names;
    std::optional<Error> error;
    auto listed = for_each_name(fd.get(), found.entry.path, [&](const std::string& name, unsigned char type) {
        if (options_.exclusions != nullptr && !error) {
            const auto left_out = leaves_out(fd.get(), below(found.entry.path, name), name, type);
            if (!left_out) error = left_out.error();
            if (left_out.value_or(true)) {
                found.entry.hides_others = true;
                found.left_out.push_back(name);
                ++excluded_;
                return;
            }
        }
        names.push_back(name);
    });
    if (!listed) return listed;
    if (error) return std::unexpected(*error);
    std::ranges::sort(names, std::greater());
    found.opened = std::make_shared<const OpenFolder>(OpenFolder{std::move(fd), found.entry.path});
    levels_.push_back({found.opened, std::move(names)});
    return {};
}

/// Absent: it is not there any more, and may be.
Result<std::optional<Found>> Walker::visit(const std::shared_ptr<const OpenFolder>& folder, const std::string& name) {
    Found found;
    found.folder = folder;
    found.name = name;
    const std::string path = below(folder->path, name);
    const auto gone = [&]() -> Result<std::optional<Found>> {
        if (options_.may_move) return std::nullopt;
        return std::unexpected(moved(path));
    };
    struct stat facts{};
    if (fstatat(folder->fd.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return gone();
        return std::unexpected(cannot(errno, "look at", path));
    }
    found.entry = entry_of(facts);
    found.entry.path = path;
    found.names = facts.st_nlink;
    if (found.entry.kind != Kind::folder) return found;
    if (facts.st_dev != device_)
        return fail(Errc::consistency_unavailable,
                    fmt::format("another file system is mounted at {}, and no moment is common to both; leave it out "
                                "with the line /{}/ in {}",
                                printable(path), printable(path), ignore_file));
    base::Fd fd(openat(folder->fd.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return gone();
        return std::unexpected(cannot(errno, "open the folder", path));
    }
    struct stat opened{};
    if (fstat(fd.get(), &opened) != 0) return std::unexpected(cannot(errno, "look at", path));
    if (opened.st_ino != facts.st_ino || opened.st_dev != facts.st_dev) return gone();
    if (auto entered = enter(found, std::move(fd)); !entered) return std::unexpected(entered.error());
    return found;
}

Result<std::optional<Found>> Walker::next() {
    if (options_.stop.stop_requested()) return fail(Errc::lock_expired, "stopped while a tree was read");
    if (!is_begun_) {
        is_begun_ = true;
        Found found;
        base::Fd fd(openat(root_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        struct stat facts{};
        if (!fd || fstat(fd.get(), &facts) != 0) return std::unexpected(cannot(errno, "open", ""));
        found.entry = entry_of(facts);
        found.entry.path = options_.at;
        device_ = facts.st_dev;
        if (auto entered = enter(found, std::move(fd)); !entered) return std::unexpected(entered.error());
        return found;
    }
    while (!levels_.empty()) {
        Level& level = levels_.back();
        if (level.names.empty()) {
            levels_.pop_back();
            continue;
        }
        const std::string name = std::move(level.names.back());
        level.names.pop_back();
        // A copy: what is visited may be one level more.
        const auto folder = level.folder;
        auto found = visit(folder, name);
        if (!found) return found;
        if (*found) return found;
    }
    return std::nullopt;
}

}  // namespace holdfast::guards::worktree
