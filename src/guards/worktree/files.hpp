#pragma once

#include "base/fd.hpp"
#include "holdfast/error.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Files and folders beneath an open folder. No symbolic link is ever followed, so that a link that somebody puts in
/// the place of a folder cannot lead outside.
namespace holdfast::guards::worktree {

using base::Fd;

/// A folder, by a path that the caller trusts.
[[nodiscard]] Result<Fd> open_folder(const std::string& path);
/// A folder in an open one. `name` has no slash.
[[nodiscard]] Result<Fd> open_folder_at(int parent, const std::string& name, std::string_view shown);
/// The folder `path` beneath `root`, however deep, name by name. Empty: `root` itself.
[[nodiscard]] Result<Fd> open_beneath(int root, std::string_view path);

/// `path` as a folder beneath `root` and a name in it.
struct Place {
    Fd folder{};
    std::string name{};
};
[[nodiscard]] Result<Place> place_beneath(int root, std::string_view path);

/// A new folder for this user alone. False if it exists.
[[nodiscard]] Result<bool> make_folder(int parent, const std::string& name, std::string_view shown);

/// The whole text of a small file; absent if there is none. Refused with `record_corrupt` beyond `most` bytes.
[[nodiscard]] Result<std::optional<std::string>> read_text(int folder, const std::string& name,
                                                           std::size_t most = std::size_t{1} << 20);
/// Replaces a file in one step, and returns when file and name are on the disk. After an error the file is the old one,
/// or, with `outcome_unknown`, either.
[[nodiscard]] Result<void> write_text(int folder, const std::string& name, std::string_view text);
/// Writes all of `bytes`. 0, or errno.
[[nodiscard]] int write_all(int fd, const void* bytes, std::size_t size);
/// Makes what happened to the names in a folder durable.
[[nodiscard]] Result<void> sync_folder(int folder, std::string_view shown);
/// Makes the whole file system that a folder is on durable.
[[nodiscard]] Result<void> sync_file_system(int folder, std::string_view shown);

/// What tells whether a name can be moved from one folder to another: a mount, and a file system in it.
struct MountId {
    std::uint64_t mount = 0;  ///< 0 where the kernel does not tell.
    std::uint64_t device = 0;
    [[nodiscard]] bool operator==(const MountId&) const = default;
};
[[nodiscard]] Result<MountId> mount_of(int folder, std::string_view shown);
[[nodiscard]] bool is_mount_point(int folder, const std::string& name);

/// Removes a file or a whole tree. Nothing there: done. Other file systems that are mounted in it stay, and are an
/// error.
[[nodiscard]] Result<void> remove_tree(int parent, const std::string& name);

/// Calls `each` for every name in a folder but `.` and `..`, in no order, with the d_type of readdir(3).
[[nodiscard]] Result<void> for_each_name(int folder, std::string_view shown,
                                         const std::function<void(const std::string& name, unsigned char type)>& each);
/// All names, sorted by bytes.
[[nodiscard]] Result<std::vector<std::string>> names_in(int folder, std::string_view shown);

}  // namespace holdfast::guards::worktree
