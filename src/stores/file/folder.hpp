#pragma once

#include "base/fd.hpp"
#include "base/file_system.hpp"
#include "base/frame.hpp"
#include "holdfast/error.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::stores::file {

using base::Bytes;
using base::ByteView;

using base::Sync;

/// A folder that belongs to us, by descriptor: all calls act on this folder, wherever its path leads by now. No
/// symbolic link is followed, folders are made with mode 0700 and files with 0600 whatever the umask. A folder or a
/// file that belongs to another user, or that others could write, is refused with `store_unsafe`.
class Folder {
public:
    /// Empty if it does not exist.
    [[nodiscard]] static Result<std::optional<Folder>> open(const std::string& path, Sync sync);

    /// Makes the folder `path` and those above it where they are missing, so that they survive a power cut.
    [[nodiscard]] static Result<void> make_path(const std::string& path, Sync sync);

    [[nodiscard]] Result<std::optional<Folder>> child(const std::string& name) const;
    [[nodiscard]] Result<Folder> made_child(const std::string& name) const;

    /// The same folder, without forcing anything to the disk.
    [[nodiscard]] Folder unsynced() && { return {std::move(fd_), std::move(path_), Sync::off}; }

    /// The names in it, in no order.
    [[nodiscard]] Result<std::vector<std::string>> entries() const;

    /// The content of a file, at most `limit` bytes of it. Empty if it does not exist.
    [[nodiscard]] Result<std::optional<Bytes>> read(const std::string& name, std::size_t limit) const;

    /// A file that is made if it is missing, for locking.
    [[nodiscard]] Result<base::Fd> open_guard(const std::string& name) const;

    /// A new file with this content, synced; the folder's entry is not. A file that had the name is replaced. After an
    /// error no file has the name.
    [[nodiscard]] Result<void> write(const std::string& name, ByteView bytes) const;

    /// Gives the file new content in one step. `outcome_unknown` if the new content may be there but not be durable.
    [[nodiscard]] Result<void> replace(const std::string& name, ByteView bytes) const;

    /// Overwrites the file from `offset` on and ends it there, synced. A file with a second name (a copy that was made
    /// of hard links) is replaced instead, so that the copy keeps its content.
    [[nodiscard]] Result<void> write_end(const std::string& name, std::uint64_t offset, ByteView bytes) const;

    /// Forces entries made, renamed and removed so far to the disk.
    [[nodiscard]] Result<void> sync() const;
    /// The same for the folder above as well, so that this folder itself is durable.
    [[nodiscard]] Result<void> sync_with_parent() const;

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + "/" + name; }
    [[nodiscard]] int fd() const { return fd_.get(); }

private:
    Folder(base::Fd fd, std::string path, Sync sync) : fd_(std::move(fd)), path_(std::move(path)), sync_(sync) {}
    [[nodiscard]] static Result<std::optional<Folder>> open_at(int parent, const std::string& name, std::string path,
                                                               Sync sync);
    [[nodiscard]] Result<void> write_end_of_copy(const std::string& name, std::uint64_t offset, ByteView bytes) const;
    [[nodiscard]] Result<void> fill(int file, std::uint64_t offset, ByteView bytes, const std::string& name) const;

    base::Fd fd_;
    std::string path_;
    Sync sync_;
};

}  // namespace holdfast::stores::file
