#pragma once

#include "base/fd.hpp"
#include "guards/worktree/repository.hpp"
#include "holdfast/error.hpp"
#include "json/worktree.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::guards::worktree {

inline constexpr auto stages_folder = "restores";
/// In a stage: the tree on its way in, and after the exchange the old one.
inline constexpr auto staged_tree = "tree";
/// In a stage: the old tree, where a file system cannot exchange two names in one step.
inline constexpr auto moved_away = "old";
/// In front of the name of a stage whose old tree was changed while it was replaced, or cannot be removed. Nothing
/// removes it by itself.
inline constexpr std::string_view kept_stage = "kept-";

/// The place where a restore works: `restores/<restore_id>`, and its intent. As long as it lives no other process takes
/// the restore over.
class RestoreStage {
public:
    [[nodiscard]] static Result<RestoreStage> begin(const Repository& repository, const Guard& guard,
                                                    json::RestoreIntent intent);
    /// One that was begun earlier; absent if its process still works on it.
    [[nodiscard]] static Result<std::optional<RestoreStage>> take_over(const Repository& repository, const Guard& guard,
                                                                       json::RestoreIntent intent);

    json::RestoreIntent intent;
    [[nodiscard]] int folder() const { return folder_.get(); }
    /// The folder with the new tree, and after the exchange with the old one: `folder()`, or `.holdfast-restore-<id>`.
    /// `store_unavailable` if it is not there, for its file system may only be unmounted.
    [[nodiscard]] Result<base::Fd> open_workplace() const;
    [[nodiscard]] bool has_workplace() const;
    [[nodiscard]] std::string workplace_path() const;
    [[nodiscard]] Result<base::Fd> open_tree() const;
    /// Writes the intent, durably.
    [[nodiscard]] Result<void> save(const Guard& guard) const;
    /// Removes everything but what is in use: the last step of every restore. Needs no guard.
    [[nodiscard]] Result<void> discard() const;
    /// Ends the restore and keeps the stage for its owner to look at. Where that is.
    [[nodiscard]] Result<std::string> keep(const Guard& guard) const;

private:
    RestoreStage(const Repository& repository, json::RestoreIntent begun, base::Fd stages, base::Fd folder)
        : intent(std::move(begun)), repository_(&repository), stages_(std::move(stages)), folder_(std::move(folder)) {}

    /// The folder that the workplace is in, if that is not `folder()`. Absent if it is gone.
    [[nodiscard]] Result<std::optional<base::Fd>> open_outside() const;
    [[nodiscard]] Result<void> make_places() const;
    [[nodiscard]] Result<void> remove_outside() const;
    [[nodiscard]] Result<std::string> keep_outside() const;
    [[nodiscard]] Result<void> remove_intent() const;

    const Repository* repository_;
    base::Fd stages_;
    base::Fd folder_;  ///< Locked; nothing if it is not there any more.
};

/// Where a tree can be made so that it can be renamed into its place in `worktree_id`; or, if that is a new one, to
/// that name.
[[nodiscard]] Result<json::RestoreIntent::Workplace> workplace_for(const Repository& repository,
                                                                   const std::string& worktree_id, bool is_in_place);
/// Whether the whole tree is exchanged name by name, since the worktree's own folder cannot be renamed.
[[nodiscard]] bool is_by_names(json::RestoreIntent::Workplace workplace, const std::string& path);

/// All restores that were begun and not finished. What cannot be read is passed over: `doctor` names it.
[[nodiscard]] Result<std::vector<json::RestoreIntent>> restore_intents(const Repository& repository);

/// `restore-<restore_id>.json`
[[nodiscard]] std::string restore_intent_file(const std::string& restore_id);

}  // namespace holdfast::guards::worktree
