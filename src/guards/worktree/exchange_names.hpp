#pragma once

#include "holdfast/error.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

/// The exchange of what is in two folders, name by name: for a worktree whose own folder cannot be renamed, because it
/// is a mount point. Not one step, so a plan of it is on the disk before the first name is touched.
namespace holdfast::guards::worktree {

/// A name in the live folder that changes.
struct NameStep {
    std::string name{};
    std::uint64_t inode = 0;  ///< Of what comes into its place; 0: nothing does, and the name goes.
};

/// Open folders on one file system.
struct NameFolders {
    int live = -1;
    int fresh = -1;  ///< What comes in; afterwards what was there.
    int spare = -1;  ///< Empty. Needed where a file system cannot exchange two names in one step.
};

/// Everything in `fresh`, and everything in `live` but the names in `stays`. `store_unsafe` if one of those in `live`
/// is a mount point.
[[nodiscard]] Result<std::vector<NameStep>> plan_names(const NameFolders& folders, const std::set<std::string>& stays);

/// In the folder of a restore. Durable when it returns.
[[nodiscard]] Result<void> write_name_plan(int folder, const std::vector<NameStep>& plan);
[[nodiscard]] Result<std::vector<NameStep>> read_name_plan(int folder);

/// Goes through the plan, and passes over what was done already. Durable when it returns. After an error everything is
/// as before the first step; with `outcome_unknown` it is in between, and the same call continues.
[[nodiscard]] Result<void> exchange_names(const NameFolders& folders, const std::vector<NameStep>& plan);

}  // namespace holdfast::guards::worktree
