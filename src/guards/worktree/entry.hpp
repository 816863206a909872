#pragma once

#include "holdfast/lease.hpp"

#include <cstdint>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

/// One thing in a tree.
namespace holdfast::guards::worktree {

enum class Kind : char {
    folder = 'd',
    file = 'f',
    hard_link = 'h',  ///< Another name of a file that came before it.
    symlink = 'l',
    fifo = 'p',
    socket = 's',            ///< Recorded only.
    block_device = 'b',      ///< Recorded only.
    character_device = 'c',  ///< Recorded only.
};

struct Moment {
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    [[nodiscard]] auto operator<=>(const Moment&) const = default;
};
[[nodiscard]] inline Moment moment_of(const timespec& time) { return {time.tv_sec, time.tv_nsec}; }

/// Where the content was, and when it last changed: if all of it is as it was, nobody has touched the file since. A
/// program can set the mtime back, and not the ctime.
struct Identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    Moment ctime{};
    [[nodiscard]] bool operator==(const Identity&) const = default;
};

using Attributes = std::vector<std::pair<std::string, std::string>>;  ///< Extended attributes, sorted by name.

struct Entry {
    std::string path{};  ///< From the root of the tree, without a slash in front; empty for the root.
    Kind kind = Kind::file;
    std::uint32_t mode = 0;  ///< Permissions, with setuid, setgid and sticky.
    std::uint32_t owner = 0;
    std::uint32_t group = 0;
    Moment mtime{};
    std::uint64_t size = 0;    ///< Of a file.
    std::uint64_t device = 0;  ///< That a device file stands for.
    std::string target{};      ///< Of a symbolic link; or the earlier name of a file.
    Attributes attributes{};
    Digest hash{};  ///< Of a file's content.

    Identity identity{};        ///< In the live tree. No part of what a snapshot holds.
    bool is_racy = false;       ///< Its ctime does not prove that it stayed as it was read.
    bool hides_others = false;  ///< A folder in which the exclusion list left something out.

    [[nodiscard]] bool has_same_metadata(const Entry& other) const {
        return kind == other.kind && mode == other.mode && owner == other.owner && group == other.group &&
               mtime == other.mtime && size == other.size && device == other.device && target == other.target &&
               attributes == other.attributes;
    }
};

/// The order in which a tree is walked: a folder before what is in it, names by their bytes.
[[nodiscard]] bool comes_before(const std::string& a, const std::string& b);

}  // namespace holdfast::guards::worktree
