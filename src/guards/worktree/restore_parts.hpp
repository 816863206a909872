#pragma once

#include "guards/worktree/exchange.hpp"
#include "guards/worktree/exclusions.hpp"
#include "guards/worktree/repository.hpp"
#include "guards/worktree/restore_excluded.hpp"
#include "guards/worktree/restore_stage.hpp"
#include "holdfast/error.hpp"

#include <string>

/// The steps that a restore and its recovery have in common.
namespace holdfast::guards::worktree {

/// In a stage: the exclusion list of the worktree, as it was when the restore began.
inline constexpr auto staged_list = "exclusions";

/// Where the new top goes and where it is before that. Its folders are open.
struct ExchangePlaces {
    base::Fd workplace{};
    base::Fd live_folder{};
    base::Fd fresh_folder{};
    std::string top{};  ///< The path of what is exchanged, in the worktree.
    NamedPlace live{};
    NamedPlace fresh{};
    NamedPlace spare{};
};
/// Of what the intent says. No step on the way may be a symbolic link.
[[nodiscard]] Result<ExchangePlaces> places_of(const Repository& repository, const RestoreStage& stage);
/// What is to be exchanged for a restore of `path`: that, or the first folder on the way to it that is missing.
[[nodiscard]] Result<std::string> top_of(const Repository& repository, const std::string& worktree_id,
                                         const std::string& path);

/// Before the intent says that the exchange begins: what of it must be on the disk. `exclusions` are those of the live
/// tree.
[[nodiscard]] Result<void> prepare_exchange(const RestoreStage& stage, const ExchangePlaces& places,
                                            const Exclusions& exclusions);
/// The exchange, in one step or name by name, as the intent says. After an error nothing is changed; with
/// `outcome_unknown`, `continue_exchange` puts it right.
[[nodiscard]] Result<void> exchange_trees(const RestoreStage& stage, const ExchangePlaces& places);
/// What a dead process has begun. True: the new tree is in place; else nothing is changed.
[[nodiscard]] Result<bool> continue_exchange(const RestoreStage& stage, const ExchangePlaces& places);

/// After the exchange of a restore in place: carries over what the list names, and dresses folders. `tops` are known to
/// be left out, so that they are missing for the shortest time. How much is left in the old tree is said by
/// `CarriedOver::left_behind`.
[[nodiscard]] Result<CarriedOver> settle_excluded(const RestoreStage& stage, const ExchangePlaces& places,
                                                  const std::vector<std::string>& tops);

/// After the exchange: the registry, the audit log and the intent say that the new tree is in place.
[[nodiscard]] Result<void> record_restored(const Repository& repository, const Guard& guard, RestoreStage& stage,
                                           const std::string& actor);

/// Whether all of the old tree is in the snapshot that was taken of it before, so that it can be removed.
[[nodiscard]] Result<bool> can_remove_old(const Repository& repository, const RestoreStage& stage,
                                          const ExchangePlaces& places);

/// The place of the old tree after the exchange: `fresh` or `spare`.
[[nodiscard]] NamedPlace old_place(const ExchangePlaces& places);

}  // namespace holdfast::guards::worktree
