#include "base/file_system.hpp"

#include "base/fd.hpp"
#include "base/os_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace holdfast::base {
namespace {

constexpr std::string_view remote = "a network file system can lose its locks, and what it acknowledged";
constexpr std::string_view unknown_backing = "what is behind FUSE may neither lock nor keep what it acknowledged";
constexpr std::string_view in_memory = "the files are in memory and do not outlive a power cut";
constexpr std::string_view in_container =
    "an overlay is usually a container's own layer: other containers do not see it, and it goes with its container";

/// The file systems on which a store promises less. Numbers as in statfs(2), the kernel's magic.h and coreutils' stat.
constexpr std::array special_file_systems{
    FileSystem{0x00006969, "NFS", Grade::c, remote},
    FileSystem{0x0000517b, "SMB", Grade::c, remote},
    FileSystem{0xff534d42, "CIFS", Grade::c, remote},
    FileSystem{0xfe534d42, "SMB2", Grade::c, remote},
    FileSystem{0x01021997, "9p", Grade::c, remote},
    FileSystem{0x00c36400, "Ceph", Grade::c, remote},
    FileSystem{0x5346414f, "AFS", Grade::c, remote},
    FileSystem{0x6b414653, "AFS", Grade::c, remote},
    FileSystem{0x73757245, "Coda", Grade::c, remote},
    FileSystem{0x0000564c, "NCP", Grade::c, remote},
    FileSystem{0x7461636f, "OCFS2", Grade::c, remote},
    FileSystem{0x01161970, "GFS2", Grade::c, remote},
    FileSystem{0x0bd00bd0, "Lustre", Grade::c, remote},
    FileSystem{0x47504653, "GPFS", Grade::c, remote},
    FileSystem{0x19830326, "BeeGFS", Grade::c, remote},
    FileSystem{0x20030528, "OrangeFS", Grade::c, remote},
    FileSystem{0xaad7aaea, "PanFS", Grade::c, remote},
    FileSystem{0x013111a8, "IBRIX", Grade::c, remote},
    FileSystem{0xbeefdead, "StorNext", Grade::c, remote},
    FileSystem{0x61636673, "ACFS", Grade::c, remote},
    FileSystem{0xbacbacbc, "vmhgfs", Grade::c, remote},
    FileSystem{0x786f4256, "vboxsf", Grade::c, remote},
    FileSystem{0x7c7c6673, "prl_fs", Grade::c, remote},
    FileSystem{0x65735546, "FUSE", Grade::c, unknown_backing},
    FileSystem{0x01021994, "tmpfs", Grade::b, in_memory},
    FileSystem{0x858458f6, "ramfs", Grade::b, in_memory},
    FileSystem{0x794c7630, "overlay", Grade::b, in_container},
    FileSystem{0x61756673, "aufs", Grade::b, in_container},
};

/// Enough for some hundred changes.
constexpr std::uint64_t least_free_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t least_free_files = 100;

/// The place itself, or before the first use the nearest folder above it that exists.
std::filesystem::path existing(std::filesystem::path path) {
    std::error_code ignored;
    while (!std::filesystem::exists(path, ignored) && path.has_relative_path()) path = path.parent_path();
    return path;
}

/// Writes a file without a name, because a quota or a disk that turned read-only shows only then. 0, or errno.
int try_to_write(const std::string& folder) {
    const Fd file(open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    // Not every file system has files without a name.
    if (!file) return errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL ? 0 : errno;
    constexpr std::array<char, 4096> something{1};
    const ssize_t written = write(file.get(), something.data(), something.size());
    if (written == ssize_t{something.size()}) return 0;
    return written < 0 ? errno : ENOSPC;
}

}  // namespace

FileSystem file_system_of(std::uint32_t magic) {
    const auto* special = std::ranges::find(special_file_systems, magic, &FileSystem::magic);
    return special != special_file_systems.end() ? *special : FileSystem{magic, "local", Grade::a, ""};
}

Promise promise_of(const std::string& path, Sync sync) {
    Promise promise;
    struct statfs found{};
    if (statfs(existing(path).c_str(), &found) != 0) {
        promise.file_system = "unknown";
        promise.lower(Grade::c, fmt::format("the file system cannot be told: {}", os_message(errno)));
    } else {
        const FileSystem kind = file_system_of(static_cast<std::uint32_t>(found.f_type));
        promise.file_system = kind.name;
        if (kind.grade != Grade::a) promise.lower(kind.grade, fmt::format("{}: {}", kind.name, kind.reason));
    }
    if (sync == Sync::off) promise.lower(Grade::b, "sync=off: a power cut can take back the last grants");
    promise.explain("every change is on a local disk before it is acknowledged");
    return promise;
}

Finding free_space_in(const std::string& folder) {
    const std::string place = existing(folder).string();
    struct statvfs info{};
    if (statvfs(place.c_str(), &info) != 0)
        return {"free_space", false, os_error(errno, "measure the free space at " + place).message};
    if (const int error = try_to_write(place); error != 0)
        return {"free_space", false, fmt::format("cannot write into {}: {}", place, os_message(error))};
    const std::uint64_t bytes = info.f_bavail * info.f_frsize;
    // Some file systems have no fixed number of files, and count none.
    const bool files_left = info.f_files == 0 || info.f_favail >= least_free_files;
    return {"free_space", bytes >= least_free_bytes && files_left,
            fmt::format("{} KiB and {} files left", bytes / 1024, info.f_favail)};
}

Finding rights_to_write(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
        if (faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0 || errno == ENOENT) continue;
        return {
            "rights", false,
            fmt::format("user {} cannot write {}: {}; use the store as its owner", geteuid(), path, os_message(errno))};
    }
    return {"rights", true, "this user can change the store"};
}

}  // namespace holdfast::base
