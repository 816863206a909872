#pragma once

#include "base/grading.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The grade that a place gives to the stores in it. All stores in files ask here, so that the same place gives them
/// the same grade.
namespace holdfast::base {

/// A kind of file system, and the best grade that a store on it can have.
struct FileSystem {
    std::uint32_t magic;    ///< As statfs(2) gives it.
    std::string_view name;  ///< `NFS`, `tmpfs`…; `local` for all others.
    Grade grade;
    std::string_view reason;  ///< Empty for grade A.
};

[[nodiscard]] FileSystem file_system_of(std::uint32_t magic);

/// Whether a change is forced to the disk before it counts as made.
enum class Sync { on, off };

/// What a store at `path` can promise, by the file system that it is or will be on.
struct Promise : Grading {
    std::string file_system{};
};

[[nodiscard]] Promise promise_of(const std::string& path, Sync sync);

/// For `doctor`: whether this user can still write into `folder`, and how much. The file that is written for this has
/// no name, and is removed at once.
[[nodiscard]] Finding free_space_in(const std::string& folder);

/// For `doctor`: whether this user may write these files and folders. Those that do not exist are passed over.
[[nodiscard]] Finding rights_to_write(const std::vector<std::string>& paths);

}  // namespace holdfast::base
