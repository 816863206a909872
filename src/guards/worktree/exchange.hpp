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

/// Device and inode of what a name stands for; absent if there is nothing.
struct ThingId {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    [[nodiscard]] bool operator==(const ThingId&) const = default;
};
[[nodiscard]] Result<std::optional<ThingId>> thing_at(const NamedPlace& place);

/// How one tree took the place of another.
enum class Exchanged {
    in_one_step,
    in_two_steps,  ///< Between them there was nothing in the place.
};

/// Puts `fresh` into the place of `live`, and what was there into that of `fresh`; or, where the file system cannot
/// exchange names in one step, to `spare`. Nothing in the place of `live`: `fresh` is moved there. Durable when it
/// returns.
///
/// After an error nothing is changed; with `outcome_unknown`, `fresh` may be in place or `live` may be at `spare`: the
/// intent of the restore and `finish_exchange` put that right.
[[nodiscard]] Result<Exchanged> exchange(const NamedPlace& live, const NamedPlace& fresh, const NamedPlace& spare);

/// Continues an exchange whose process died: afterwards `fresh_id` is in place, or nothing was exchanged. True: it is
/// in place.
[[nodiscard]] Result<bool> finish_exchange(const NamedPlace& live, const NamedPlace& fresh, const NamedPlace& spare,
                                           const ThingId& fresh_id);

}  // namespace holdfast::guards::worktree
