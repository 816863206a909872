#include "stores/file/file_system.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <sys/vfs.h>

namespace holdfast::stores::file {
namespace {

struct FileSystem {
    std::uint32_t magic;  ///< As `statfs` gives it.
    std::string_view name;
    Grade grade;
    std::string_view reason;
};

constexpr std::string_view remote = "locks of a network file system are lost when its server forgets them";
constexpr std::string_view unknown_backing = "what is behind FUSE may neither lock nor keep what it acknowledged";
constexpr std::string_view in_memory = "the files are in memory and gone with the host";
constexpr std::string_view in_container = "an overlay is usually a container's own layer and goes with it";

constexpr std::array known_file_systems{
    FileSystem{0x6969, "nfs", Grade::c, remote},
    FileSystem{0x517b, "smb", Grade::c, remote},
    FileSystem{0xff534d42, "cifs", Grade::c, remote},
    FileSystem{0xfe534d42, "smb2", Grade::c, remote},
    FileSystem{0x01021997, "9p", Grade::c, remote},
    FileSystem{0x00c36400, "ceph", Grade::c, remote},
    FileSystem{0x5346414f, "afs", Grade::c, remote},
    FileSystem{0x6b414653, "afs", Grade::c, remote},
    FileSystem{0x73757245, "coda", Grade::c, remote},
    FileSystem{0x564c, "ncp", Grade::c, remote},
    FileSystem{0x7461636f, "ocfs2", Grade::c, remote},
    FileSystem{0x01161970, "gfs2", Grade::c, remote},
    FileSystem{0x0bd00bd0, "lustre", Grade::c, remote},
    FileSystem{0x47504653, "gpfs", Grade::c, remote},
    FileSystem{0x20030528, "orangefs", Grade::c, remote},
    FileSystem{0xbacbacbc, "vmhgfs", Grade::c, remote},
    FileSystem{0x786f4256, "vboxsf", Grade::c, remote},
    FileSystem{0x65735546, "fuse", Grade::c, unknown_backing},
    FileSystem{0x01021994, "tmpfs", Grade::b, in_memory},
    FileSystem{0x858458f6, "ramfs", Grade::b, in_memory},
    FileSystem{0x794c7630, "overlay", Grade::b, in_container},
};

}  // namespace

Promise promise_of(const std::string& path, Sync sync) {
    Promise promise{"a local disk", Grade::a, {}};
    struct statfs info{};
    std::filesystem::path existing = path;
    // Before the first use only a folder above tells where the store will be.
    while (statfs(existing.c_str(), &info) != 0 && existing.has_relative_path()) existing = existing.parent_path();
    const auto magic = static_cast<std::uint32_t>(info.f_type);
    const auto* known = std::ranges::find(known_file_systems, magic, &FileSystem::magic);
    if (known != known_file_systems.end()) {
        promise.file_system = known->name;
        promise.grade = known->grade;
        promise.reasons.emplace_back(known->reason);
    }
    if (sync == Sync::off) {
        promise.grade = std::max(promise.grade, Grade::b);
        promise.reasons.emplace_back("sync=off: a power cut can take back what was granted");
    }
    if (promise.reasons.empty())
        promise.reasons.emplace_back("every change is on a local disk before it is acknowledged");
    return promise;
}

}  // namespace holdfast::stores::file
