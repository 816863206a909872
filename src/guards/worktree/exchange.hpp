#pragma once

#include "guards/worktree/entry.hpp"
#include "holdfast/error.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::guards::worktree {

/// A name in an open folder.
struct NamedPlace {
    int folder = -1;
    std::string name{};
    std::string shown{};
};

/// The inode of what a name stands for; absent if there is nothing. What is exchanged is on one file system, whose own
/// number may be another one after the next mount: the inode alone tells one thing from another.
[[nodiscard]] Result<std::optional<std::uint64_t>> inode_at(const NamedPlace& place);

/// 0, or errno; EEXIST if something has the name. Only one process at a time exchanges trees, so that what is in the
/// way was there before, also where the file system cannot look and move in one step.
[[nodiscard]] int move_to_free_name(const NamedPlace& from, const NamedPlace& to);

/// `exchange` without its durability and its words: 0, or errno with everything as before. What was in the place of
/// `live` is at `fresh` or `spare`.
[[nodiscard]] int put_in_place(const NamedPlace& live, const NamedPlace& fresh, const NamedPlace& spare);

/// Puts `fresh` into the place of `live`, and what was there into that of `fresh`; or, where the file system cannot
/// exchange names in one step, to `spare`. Nothing in the place of `live`: `fresh` is moved there. Durable when it
/// returns.
///
/// After an error nothing is changed; with `outcome_unknown`, `fresh` may be in place or `live` may be at `spare`: the
/// intent of the restore and `finish_exchange` put that right.
[[nodiscard]] Result<void> exchange(const NamedPlace& live, const NamedPlace& fresh, const NamedPlace& spare);

/// Continues an exchange whose process died: afterwards the thing that `inode` tells is in place, or nothing was
/// exchanged. True: it is in place.
[[nodiscard]] Result<bool> finish_exchange(const NamedPlace& live, const NamedPlace& fresh, const NamedPlace& spare,
                                           std::uint64_t inode);

}  // namespace holdfast::guards::worktree
