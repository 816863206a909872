#pragma once

#include "holdfast/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>

/// Whether another user could change a store. All stores in files ask here, so that they refuse the same cases, with
/// `store_unsafe` and a message that says what to do.
namespace holdfast::base {

/// What the kernel knows about a file or a folder.
struct FileFacts {
    dev_t device = 0;
    ino_t inode = 0;
    mode_t mode = 0;
    uid_t owner = 0;
    gid_t group = 0;
    std::uint64_t names = 0;  ///< Hard links.
    std::uint64_t size = 0;   ///< In bytes.
    bool is_mounted = false;  ///< Something was mounted exactly there. Linux before 5.8 does not tell.
};

/// Empty if nothing has that name. A symbolic link is not followed, and nothing is opened.
[[nodiscard]] Result<std::optional<FileFacts>> facts_of(const std::string& path);
/// `path` is for the message.
[[nodiscard]] Result<FileFacts> facts_of(int fd, const std::string& path);

/// A plain file of ours or of root's that nobody else can write.
[[nodiscard]] Result<void> expect_our_file(const FileFacts& facts, const std::string& path);

/// A folder of ours or of root's in which nobody else can make, rename or remove anything.
[[nodiscard]] Result<void> expect_our_folder(const FileFacts& facts, const std::string& path);

/// The folder that a store lies in. No other user may be able to remove the store, because the next process would
/// create an empty one. A sticky bit is enough, and so is a group that is the owner's alone. A folder that does not
/// exist is not refused.
[[nodiscard]] Result<void> expect_safe_place(const std::string& folder);

/// Whether this process may change what is at `path`: it has the right to, and the file system takes changes.
[[nodiscard]] bool may_write(const std::string& path);

}  // namespace holdfast::base
