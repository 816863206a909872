#include "guards/worktree/snapshot_reader.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/files.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>

namespace holdfast::guards::worktree {
namespace {

int lock_folder(int folder, int how) {
    int result = 0;
    do result = flock(folder, how);
    while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

/// Its publisher has it locked for itself until its process ends, which is soon, unless that was stopped.
int lock_for_reading(int folder) {
    constexpr int attempts = 1000;
    constexpr std::chrono::milliseconds pause{10};
    int error = lock_folder(folder, LOCK_SH | LOCK_NB);
    for (int i = 0; i < attempts && error == EWOULDBLOCK; ++i) {
        std::this_thread::sleep_for(pause);
        error = lock_folder(folder, LOCK_SH | LOCK_NB);
    }
    return error;
}

}  // namespace

Result<SnapshotReader> SnapshotReader::open(const Repository& repository, json::SnapshotDescriptor descriptor) {
    const std::string id = descriptor.snapshot_id;
    const auto gone = [&] {
        return fail(Errc::lock_not_held, fmt::format("the snapshot {} was pruned meanwhile", id));
    };
    const auto all = repository.open_control("snapshots");
    if (!all) return std::unexpected(all.error());
    auto folder = open_folder_at(all->get(), id, "snapshots/" + id);
    struct stat mine{};
    struct stat there{};
    if (!folder)
        return fstatat(all->get(), id.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 ? std::unexpected(folder.error())
                                                                                 : gone();
    if (const int error = lock_for_reading(folder->get()); error != 0)
        return std::unexpected(base::os_error(error, "use the snapshot " + id));
    // Pruning renames the folder while it has it locked. So if the name still leads here, it is ours from now on.
    if (fstat(folder->get(), &mine) != 0 || fstatat(all->get(), id.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 ||
        mine.st_ino != there.st_ino || mine.st_dev != there.st_dev)
        return gone();
    auto payload = open_folder_at(folder->get(), payload_folder, id + "/" + payload_folder);
    if (!payload) return std::unexpected(payload.error());
    return SnapshotReader(std::move(descriptor), *std::move(folder), *std::move(payload));
}

Result<ManifestReader> SnapshotReader::manifest() const { return ManifestReader::open(folder_.get(), manifest_file); }

Result<void> SnapshotReader::check(const ManifestReader& manifest) const {
    if (manifest.file_hash() == descriptor_.manifest_hash) return {};
    return fail(Errc::payload_hash_mismatch,
                fmt::format("the manifest of {} is not the one that its descriptor names", descriptor_.snapshot_id));
}

Result<std::optional<base::Fd>> open_if_unused(int parent, const std::string& name, std::string_view shown) {
    auto folder = open_folder_at(parent, name, shown);
    if (!folder) return std::unexpected(folder.error());
    const int error = lock_folder(folder->get(), LOCK_EX | LOCK_NB);
    if (error == EWOULDBLOCK) return std::nullopt;
    if (error != 0) return std::unexpected(base::os_error(error, "use " + printable(shown)));
    return std::optional<base::Fd>(*std::move(folder));
}

}  // namespace holdfast::guards::worktree
