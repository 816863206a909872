#pragma once

#include "guards/worktree/diff.hpp"
#include "guards/worktree/repository.hpp"
#include "guards/worktree/restore_copy.hpp"
#include "guards/worktree/restore_stage.hpp"
#include "holdfast/error.hpp"
#include "json/worktree.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

/// A snapshot becomes a worktree again: a new one, or one that is there.
namespace holdfast::guards::worktree {

/// What every restore needs.
struct RestoreOrder {
    json::SnapshotDescriptor snapshot{};
    std::string worktree_id{};  ///< Where to: a new name, or the worktree whose tree is replaced.
    std::string path{};         ///< Only this; empty for everything.
    std::string actor{};
    std::stop_token stop{};
    std::function<void(std::uint64_t entries, const CopyFacts& facts)> progress{};
};

/// Makes a new worktree from a snapshot. Needs no lease. `usage` if something has that name already.
[[nodiscard]] Result<RestoredTree> restore_to_new(const Repository& repository, const RestoreOrder& order);

/// The lease that a worktree is changed under, and the way back.
struct InPlaceTerms {
    std::string holder_id{};
    std::uint64_t token = 0;
    std::string lock_id{};  ///< Empty without a lease: of a shared worktree.
    std::string undo_id{};  ///< The snapshot that was taken of the old tree.
    /// Whether the lease is still the newest of the worktree. Called under the guard, right before the exchange; an
    /// error ends the restore with nothing changed.
    std::function<Result<void>(const Guard& guard)> check{};
};

struct InPlaceRestored {
    RestoredTree tree{};
    std::uint64_t carried_over = 0;  ///< Things that the exclusion list names.
    std::string kept{};              ///< Where the old tree is, if it was not removed.
    std::string kept_why{};
    std::vector<std::string> processes{};  ///< That still use the old tree: `1234 (vim)`.
};

/// Replaces a worktree's tree, or one path in it, by that of a snapshot. Before the exchange nothing is changed, and
/// after it everything is; what the exclusion list names stays as it was.
[[nodiscard]] Result<InPlaceRestored> restore_in_place(const Repository& repository, const RestoreOrder& order,
                                                       const InPlaceTerms& terms);

/// Tells `each` what `restore_in_place` would change.
[[nodiscard]] Result<void> preview_in_place(const Repository& repository, const RestoreOrder& order,
                                            const std::function<Result<void>(const Difference&)>& each);

/// What became of a restore whose process died.
struct Recovered {
    json::RestoreIntent intent{};
    bool is_in_place = false;  ///< The new tree is in place; else nothing was changed.
    std::string kept{};        ///< Where the old tree is, if it was not removed.
};
/// Ends every restore whose process is gone: forwards if the exchange was begun, else backwards.
[[nodiscard]] Result<std::vector<Recovered>> recover_restores(const Repository& repository, const Guard& guard);

}  // namespace holdfast::guards::worktree
