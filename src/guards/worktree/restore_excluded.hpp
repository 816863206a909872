#pragma once

#include "guards/worktree/entry.hpp"
#include "guards/worktree/exclusions.hpp"
#include "guards/worktree/manifest.hpp"
#include "guards/worktree/restore_stage.hpp"
#include "holdfast/error.hpp"

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

/// What the exclusion list leaves out is not in snapshots, so a restore neither changes nor removes it: it is moved
/// from the old tree into the new one. All paths are those of the worktree; trees are open folders, whose own path is
/// `at`.
namespace holdfast::guards::worktree {

/// What is left out of a live tree: the top of each such subtree.
class ExcludedThings {
public:
    ExcludedThings() = default;
    /// Whether what lies directly in the worktree's own folder has to be moved.
    enum class AtTheTop { moves, stays };
    /// `exclusions` must outlive it. `store_unsafe` if one that has to be moved is a mount point.
    [[nodiscard]] static Result<ExcludedThings> in(int tree, const std::string& at, const Exclusions& exclusions,
                                                   std::stop_token stop, AtTheTop at_the_top = AtTheTop::moves);

    [[nodiscard]] const std::vector<std::string>& tops() const { return tops_; }
    /// Whether a restore must leave `entry` of a snapshot alone: because of the list, or because it is in the way.
    [[nodiscard]] bool covers(const Entry& entry) const;
    /// `usage` if `entry` is no folder, and would have to be one for what is left out of the live tree.
    [[nodiscard]] Result<void> expect_room(const Entry& entry) const;

private:
    const Exclusions* exclusions_ = nullptr;
    std::vector<std::string> tops_{};  ///< In the order of manifests.
};

/// Of a restore of `path`.
[[nodiscard]] ExcludedThings::AtTheTop at_the_top(json::RestoreIntent::Workplace workplace, const std::string& path);

struct CarriedOver {
    std::uint64_t things = 0;
    std::vector<std::string> left_behind{};  ///< The new tree has something of that name.
};

/// Moves `tops` from the tree `from` to the same paths in the tree `to`. What is not there any more is passed over.
[[nodiscard]] Result<CarriedOver> carry_over(int from, int to, const std::string& at,
                                             const std::vector<std::string>& tops);

/// Gives the folders of `tree` that have things of the exclusion list in them what `manifest` says, since every name
/// that was moved into them has changed their time.
[[nodiscard]] Result<void> dress_parents(int tree, const std::string& at, const Exclusions& exclusions,
                                         ManifestReader manifest);

}  // namespace holdfast::guards::worktree
