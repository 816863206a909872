#include "stores/sqlite/place.hpp"

#include "base/fd.hpp"
#include "base/os_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <ranges>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace holdfast::stores::sqlite {
namespace {

namespace fs = std::filesystem;

enum class Kind { network, memory };

struct FileSystem {
    std::uint32_t magic;
    std::string_view name;
    Kind kind;
};

/// The file systems on which the promise is smaller. Numbers as in statfs(2) and the kernel's magic.h.
constexpr std::array special_file_systems{
    FileSystem{0x6969, "NFS", Kind::network},        FileSystem{0x517B, "SMB", Kind::network},
    FileSystem{0xFF534D42, "CIFS", Kind::network},   FileSystem{0xFE534D42, "SMB", Kind::network},
    FileSystem{0x01021997, "9p", Kind::network},     FileSystem{0x65735546, "FUSE", Kind::network},
    FileSystem{0x00C36400, "Ceph", Kind::network},   FileSystem{0x5346414F, "AFS", Kind::network},
    FileSystem{0x6B414653, "AFS", Kind::network},    FileSystem{0x73757245, "Coda", Kind::network},
    FileSystem{0x0BD00BD0, "Lustre", Kind::network}, FileSystem{0x47504653, "GPFS", Kind::network},
    FileSystem{0x7461636F, "OCFS2", Kind::network},  FileSystem{0x01161970, "GFS2", Kind::network},
    FileSystem{0x19830326, "BeeGFS", Kind::network}, FileSystem{0x786F4256, "vboxsf", Kind::network},
    FileSystem{0x01021994, "tmpfs", Kind::memory},   FileSystem{0x858458F6, "ramfs", Kind::memory},
};

std::unexpected<Error> os_failure(int errno_value, const std::string& doing) {
    return std::unexpected(base::os_error(errno_value, doing));
}

Result<void> check_folder(const std::string& folder) {
    struct stat found{};
    if (stat(folder.c_str(), &found) != 0) return os_failure(errno, "look at " + folder);
    if (!S_ISDIR(found.st_mode)) return fail(Errc::usage, folder + " is not a folder");
    if ((found.st_mode & S_IWOTH) != 0 && (found.st_mode & S_ISVTX) == 0)
        return fail(Errc::store_unsafe,
                    fmt::format("anybody can swap files in {}; take the right away with chmod o-w", folder));
    return {};
}

/// Makes a new name in `folder` survive a power cut.
Result<void> sync_folder(const std::string& folder) {
    const base::Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || fsync(fd.get()) != 0) return os_failure(errno, "sync " + folder);
    return {};
}

/// The folder itself, or the nearest one above it that exists.
std::string existing_folder(const fs::path& folder) {
    fs::path found = folder;
    std::error_code ignored;
    while (!fs::exists(found, ignored) && found.has_relative_path()) found = found.parent_path();
    return found.string();
}

}  // namespace

Result<Place> Place::of(const std::string& text) {
    const fs::path path(text);
    if (text.empty() || !path.has_filename() || path.filename() == "." || path.filename() == "..")
        return fail(Errc::usage, "a SQLite store needs a file: sqlite:FILE or sqlite:///abs/file.db");
    std::error_code failed;
    // SQLite refuses a symbolic link anywhere in the path when it is told to follow none. Links among the
    // folders are the administrator's choice; the file itself must not be one.
    const fs::path absolute = fs::absolute(path, failed);
    if (failed) return os_failure(failed.value(), "find " + text);
    const fs::path folder = fs::weakly_canonical(absolute.parent_path(), failed);
    if (failed) return os_failure(failed.value(), "find " + text);
    return Place{folder.string(), (folder / path.filename()).string()};
}

Result<std::optional<FileIdentity>> look_at(const Place& place) {
    struct stat found{};
    if (lstat(place.database.c_str(), &found) != 0) {
        if (errno == ENOENT) return std::nullopt;
        return os_failure(errno, "look at " + place.database);
    }
    const auto unsafe = [&](std::string_view why) {
        return fail(Errc::store_unsafe, fmt::format("{} {}", place.database, why));
    };
    if (S_ISLNK(found.st_mode)) return unsafe("is a symbolic link, which is refused");
    if (!S_ISREG(found.st_mode)) return unsafe("is not a plain file");
    if (found.st_uid != geteuid() && found.st_uid != 0) return unsafe("belongs to another user");
    if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return unsafe("can be written by others; take the right away with chmod go-w");
    if (auto folder = check_folder(place.folder); !folder) return std::unexpected(folder.error());
    if (found.st_size == 0) return std::nullopt;
    return FileIdentity{found.st_dev, found.st_ino};
}

std::optional<FileIdentity> identity_of(const Place& place) {
    struct stat found{};
    if (lstat(place.database.c_str(), &found) != 0) return std::nullopt;
    return FileIdentity{found.st_dev, found.st_ino};
}

bool has_log(const Place& place) {
    // What is not longer than a header has no content.
    constexpr off_t header = 32;
    struct stat found{};
    return lstat(place.log().c_str(), &found) == 0 && found.st_size > header;
}

Result<void> make_folder(const Place& place) {
    std::vector<fs::path> missing;
    std::error_code ignored;
    for (fs::path folder = place.folder; !fs::exists(folder, ignored) && folder.has_relative_path();
         folder = folder.parent_path())
        missing.push_back(folder);
    for (const fs::path& folder : missing | std::views::reverse) {
        // Somebody else may be the first user, too.
        if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return os_failure(errno, "make " + folder.string());
        if (auto synced = sync_folder(folder.parent_path().string()); !synced) return synced;
    }
    return check_folder(place.folder);
}

Result<void> make_database_file(const Place& place) {
    {
        const base::Fd made(open(place.database.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!made && errno == EEXIST) return {};
        if (!made) return os_failure(errno, "make " + place.database);
    }
    return sync_folder(place.folder);
}

Standing standing_of(const Place& place, Sync sync) {
    Standing standing{"local", Grade::a, {}};
    const auto lower = [&](Grade grade, std::string reason) {
        standing.grade = std::max(standing.grade, grade);
        standing.reasons.push_back(std::move(reason));
    };
    struct statfs found{};
    if (statfs(existing_folder(place.folder).c_str(), &found) != 0) {
        lower(Grade::c, fmt::format("the file system cannot be told: {}", base::os_message(errno)));
    } else {
        const auto magic = static_cast<std::uint32_t>(found.f_type);
        const auto* special = std::ranges::find(special_file_systems, magic, &FileSystem::magic);
        if (special != special_file_systems.end()) {
            standing.file_system = special->name;
            if (special->kind == Kind::network)
                lower(Grade::c, fmt::format("{} may not keep SQLite's file locks between hosts", special->name));
            else
                lower(Grade::b, fmt::format("{} does not outlive a power cut", special->name));
        }
    }
    if (sync == Sync::off) lower(Grade::b, "sync=off: the last grants may not outlive a power cut");
    if (standing.reasons.empty()) standing.reasons.emplace_back("every grant is synced to a local file system");
    return standing;
}

}  // namespace holdfast::stores::sqlite
