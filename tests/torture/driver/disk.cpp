#include "torture/driver/disk.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <system_error>

namespace torture {
namespace {

constexpr std::uint64_t roomy = 1U << 30U;

int set_size(const std::filesystem::path& where, std::uint64_t bytes, unsigned long flags) {
    return mount("none", where.c_str(), "tmpfs", flags, fmt::format("size={},mode=0700", bytes).c_str());
}

}  // namespace

Disk::Disk(std::filesystem::path where) : where_(std::move(where)) {
    // A view of the mounts that is ours: nobody else sees the disk, and nobody has to clean up.
    mounted_ = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               set_size(where_, roomy, 0) == 0;
}

Disk::~Disk() {
    if (mounted_) umount2(where_.c_str(), MNT_DETACH);
}

/// The disk shrinks to what is on it, which takes no time and no memory. It is in use meanwhile, so what is on it may
/// have become more.
void Disk::fill() {
    for (int attempt = 0; attempt < 100; ++attempt) {
        struct statfs now{};
        if (statfs(where_.c_str(), &now) != 0) break;
        const auto used = static_cast<std::uint64_t>(now.f_bsize) * (now.f_blocks - now.f_bfree);
        if (set_size(where_, used, MS_REMOUNT) == 0) return;
    }
    throw std::system_error(errno, std::generic_category(), "fill the disk");
}

void Disk::make_room() {
    if (set_size(where_, roomy, MS_REMOUNT) != 0)
        throw std::system_error(errno, std::generic_category(), "make room on the disk");
}

}  // namespace torture
