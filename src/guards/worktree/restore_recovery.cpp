#include "guards/worktree/files.hpp"
#include "guards/worktree/restore.hpp"
#include "guards/worktree/restore_parts.hpp"

namespace holdfast::guards::worktree {
namespace {

using State = json::RestoreIntent::State;

/// Whether the new tree is in place afterwards.
Result<bool> finish(const Repository& repository, const Guard& guard, RestoreStage& stage) {
    if (stage.intent.state == State::finished) return true;
    if (stage.intent.state == State::copying || stage.folder() < 0) return false;
    // Kept by a process that died before it had said so.
    if (stage.intent.state == State::settled && !stage.has_workplace()) return true;
    const auto places = places_of(repository, stage);
    if (!places) return std::unexpected(places.error());
    if (stage.intent.state == State::exchanging) {
        const auto is_in_place = continue_exchange(stage, *places);
        if (!is_in_place || !*is_in_place) return is_in_place;
        if (stage.intent.is_in_place)
            if (const auto carried = settle_excluded(stage, *places, {}); !carried)
                return std::unexpected(carried.error());
        if (auto recorded = record_restored(repository, guard, stage, stage.intent.holder_id); !recorded)
            return std::unexpected(recorded.error());
    }
    if (!stage.intent.is_in_place) return true;
    const auto is_saved = can_remove_old(repository, stage, *places);
    if (is_saved && *is_saved) {
        stage.intent.state = State::finished;
        if (auto saved = stage.save(guard); !saved) return std::unexpected(saved.error());
    }
    return true;
}

}  // namespace

Result<std::vector<Recovered>> recover_restores(const Repository& repository, const Guard& guard) {
    const auto intents = restore_intents(repository);
    if (!intents) return std::unexpected(intents.error());
    std::vector<Recovered> recovered;
    for (const json::RestoreIntent& intent : *intents) {
        auto stage = RestoreStage::take_over(repository, guard, intent);
        if (!stage) return std::unexpected(stage.error());
        if (!*stage) continue;
        const auto is_in_place = finish(repository, guard, **stage);
        if (!is_in_place) return std::unexpected(is_in_place.error());
        Recovered one{intent, *is_in_place, {}};
        const bool is_changed = (*stage)->intent.is_in_place && (*stage)->intent.state == State::settled;
        const auto discarded = is_changed ? Result<void>() : (*stage)->discard();
        if (!discarded && (*stage)->intent.state != State::finished) return std::unexpected(discarded.error());
        // An old tree that cannot be removed must not keep the next holder out.
        if (is_changed || !discarded) {
            auto kept = (*stage)->keep(guard);
            if (!kept) return std::unexpected(kept.error());
            one.kept = *std::move(kept);
        }
        recovered.push_back(std::move(one));
    }
    return recovered;
}

}  // namespace holdfast::guards::worktree
