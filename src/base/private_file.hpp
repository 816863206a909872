#pragma once

#include "holdfast/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

/// Small files of one user that programs read whole and replace whole.
namespace holdfast::base {

/// Tells one content of a file from another. Two that are equal may still differ if the file was changed within the
/// resolution of the file system's clock.
struct FileVersion {
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t size = 0;
    std::int64_t changed_ns = 0;  ///< The file's ctime, which nobody can set.

    [[nodiscard]] bool operator==(const FileVersion&) const = default;
};

/// Empty if there is no such file.
[[nodiscard]] Result<std::optional<FileVersion>> version_of(const std::string& path);

struct PrivateFile {
    std::string text{};
    FileVersion version{};
};

/// Reads a plain file of ours or of root's that nobody else can write, in a place where nobody else can swap it. A link
/// is followed: only the user or root can have made it there. Refused with `store_unsafe` if it is not, or longer than
/// `most`; `store_unavailable` if it does not exist.
[[nodiscard]] Result<PrivateFile> read_private_file(const std::string& path, std::size_t most);

/// Gives the file new content in one step, mode 0600, on the disk before this returns. Of two at once the last one
/// wins, so that callers that read first hold a lock. A link is refused, since it would be replaced.
[[nodiscard]] Result<void> replace_private_file(const std::string& path, std::string_view text);

}  // namespace holdfast::base
