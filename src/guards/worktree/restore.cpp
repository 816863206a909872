#include "guards/worktree/restore.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/restore_parts.hpp"
#include "guards/worktree/users_of_tree.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>

namespace holdfast::guards::worktree {
namespace {

constexpr std::chrono::seconds patience{30};

Deadline soon(const Repository& repository) { return Deadline::in(repository.clock(), patience); }

Result<RestoreStage> begin(const Repository& repository, const RestoreOrder& order, const InPlaceTerms* terms) {
    json::RestoreIntent intent;
    intent.restore_id = new_snapshot_id(repository.clock().wall());
    intent.worktree_id = order.worktree_id;
    intent.snapshot_id = order.snapshot.snapshot_id;
    intent.path = order.path;
    intent.is_in_place = terms != nullptr;
    const auto workplace = workplace_for(repository, order.worktree_id, intent.is_in_place);
    if (!workplace) return std::unexpected(workplace.error());
    intent.workplace = *workplace;
    intent.started_at = repository.clock().wall();
    intent.holder_id = order.actor;
    if (terms != nullptr) {
        intent.holder_id = terms->holder_id;
        intent.token = terms->token;
        intent.lock_id = terms->lock_id;
        intent.undo_id = terms->undo_id;
    }
    const auto guard = repository.guard(soon(repository));
    if (!guard) return std::unexpected(guard.error());
    if (auto recovered = recover_restores(repository, *guard); !recovered) return std::unexpected(recovered.error());
    return RestoreStage::begin(repository, *guard, std::move(intent));
}

RestoreSelection selection_of(const RestoreOrder& order) {
    return {.path = order.path, .leave_out = {}, .stop = order.stop, .progress = order.progress};
}

/// A restore that failed before the exchange leaves nothing behind. What cannot be removed now, `doctor` finds.
std::unexpected<Error> give_up(const RestoreStage& stage, const Error& error) {
    static_cast<void>(stage.discard());
    return std::unexpected(error);
}

Result<void> expect_free_name(const Repository& repository, const std::string& worktree_id) {
    const auto registry = repository.registry();
    if (!registry) return std::unexpected(registry.error());
    const auto there = inode_at({repository.root_fd(), worktree_id, worktree_id});
    if (!there) return std::unexpected(there.error());
    if (!*there && find_row(*registry, worktree_id) == nullptr) return {};
    return fail(Errc::usage,
                fmt::format("{} is there already; name another folder with --to, or replace that worktree's "
                            "tree with --inplace",
                            printable(worktree_id)));
}

Result<void> set_fresh_id(RestoreStage& stage, const ExchangePlaces& places) {
    const auto fresh = inode_at(places.fresh);
    if (!fresh) return std::unexpected(fresh.error());
    if (!*fresh) return fail(Errc::lock_not_held, "the snapshot has nothing to put at " + printable(places.live.shown));
    stage.intent.inode = **fresh;
    stage.intent.state = json::RestoreIntent::State::exchanging;
    return {};
}

/// A restore in place, step by step.
class InPlace {
public:
    InPlace(const Repository& repository, const RestoreOrder& order, const InPlaceTerms& terms)
        : repository_(repository), order_(order), terms_(terms) {}

    Result<InPlaceRestored> run() {
        auto snapshot = SnapshotReader::open(repository_, order_.snapshot);
        if (!snapshot) return std::unexpected(snapshot.error());
        auto begun = begin(repository_, order_, &terms_);
        if (!begun) return std::unexpected(begun.error());
        RestoreStage stage = *std::move(begun);
        if (auto copied = copy(stage, *snapshot); !copied) return give_up(stage, copied.error());
        if (auto exchanged = exchange_under_guard(stage); !exchanged) return std::unexpected(exchanged.error());
        if (auto cleaned = clean_up(stage); !cleaned) return std::unexpected(cleaned.error());
        return done_;
    }

private:
    Result<void> copy(const RestoreStage& stage, const SnapshotReader& snapshot) {
        const auto root = repository_.open_worktree(order_.worktree_id);
        if (!root) return std::unexpected(root.error());
        const auto list = read_text(root->get(), ignore_file);
        if (!list) return std::unexpected(list.error());
        if (auto written = write_text(stage.folder(), staged_list, list->value_or("")); !written) return written;
        auto parsed = Exclusions::parse(list->value_or(""));
        if (!parsed) return std::unexpected(parsed.error());
        exclusions_ = *std::move(parsed);
        auto excluded = ExcludedThings::in(root->get(), "", exclusions_, order_.stop,
                                           at_the_top(stage.intent.workplace, order_.path));
        if (!excluded) return std::unexpected(excluded.error());
        excluded_ = *std::move(excluded);
        const auto tree = stage.open_tree();
        if (!tree) return std::unexpected(tree.error());
        RestoreSelection selection = selection_of(order_);
        std::optional<Error> no_room;
        selection.leave_out = [&](const Entry& entry) {
            if (const auto room = excluded_.expect_room(entry); !room && !no_room) no_room = room.error();
            return excluded_.covers(entry);
        };
        const auto copied = copy_snapshot(snapshot, stage.folder(), tree->get(), selection);
        if (!copied) return std::unexpected(copied.error());
        if (no_room) return std::unexpected(*no_room);
        done_.tree = *copied;
        return {};
    }

    /// Under the guard: the check of the lease, and the exchange.
    Result<void> exchange_under_guard(RestoreStage& stage) {
        const auto guard = repository_.guard(soon(repository_));
        if (!guard) return give_up(stage, guard.error());
        auto top = top_of(repository_, order_.worktree_id, order_.path);
        if (!top) return give_up(stage, top.error());
        stage.intent.top = *std::move(top);
        auto found = places_of(repository_, stage);
        if (!found) return give_up(stage, found.error());
        places_ = *std::move(found);
        if (auto known = set_fresh_id(stage, places_); !known) return give_up(stage, known.error());
        if (auto prepared = prepare_exchange(stage, places_, exclusions_); !prepared)
            return give_up(stage, prepared.error());
        if (auto checked = terms_.check(*guard); !checked) return give_up(stage, checked.error());
        // From here on, whatever happens, the intent decides.
        if (auto saved = stage.save(*guard); !saved) return saved;
        if (const auto exchanged = exchange_trees(stage, places_); !exchanged) {
            if (exchanged.error().code == Errc::outcome_unknown) return std::unexpected(exchanged.error());
            return give_up(stage, exchanged.error());
        }
        auto carried = settle_excluded(stage, places_, tops_beneath());
        if (!carried) return std::unexpected(carried.error());
        done_.carried_over = carried->things;
        return record_restored(repository_, *guard, stage, order_.actor);
    }

    [[nodiscard]] std::vector<std::string> tops_beneath() const {
        std::vector<std::string> tops;
        for (const std::string& top : excluded_.tops())
            if (is_at_or_beneath(top, places_.top)) tops.push_back(top);
        return tops;
    }

    /// The old tree goes, unless it has something that is nowhere else.
    Result<void> clean_up(RestoreStage& stage) {
        done_.processes = users_of_tree(stage.workplace_path());
        const auto is_saved = can_remove_old(repository_, stage, places_);
        const auto guard = repository_.guard(soon(repository_));
        if (!guard) return std::unexpected(guard.error());
        if (!is_saved || !*is_saved) return keep(stage, *guard, "it was changed while it was replaced");
        stage.intent.state = json::RestoreIntent::State::finished;
        if (auto saved = stage.save(*guard); !saved) return saved;
        const auto discarded = stage.discard();
        // A folder of another user in it, for instance. The tree is restored all the same.
        return discarded ? Result<void>() : keep(stage, *guard, discarded.error().message);
    }

    Result<void> keep(const RestoreStage& stage, const Guard& guard, const std::string& why) {
        auto kept = stage.keep(guard);
        if (!kept) return std::unexpected(kept.error());
        done_.kept = *std::move(kept);
        done_.kept_why = why;
        return {};
    }

    const Repository& repository_;
    const RestoreOrder& order_;
    const InPlaceTerms& terms_;
    Exclusions exclusions_{};
    ExcludedThings excluded_{};
    ExchangePlaces places_{};
    InPlaceRestored done_{};
};

}  // namespace

Result<RestoredTree> restore_to_new(const Repository& repository, const RestoreOrder& order) {
    if (auto is_free = expect_free_name(repository, order.worktree_id); !is_free)
        return std::unexpected(is_free.error());
    const auto snapshot = SnapshotReader::open(repository, order.snapshot);
    if (!snapshot) return std::unexpected(snapshot.error());
    auto begun = begin(repository, order, nullptr);
    if (!begun) return std::unexpected(begun.error());
    RestoreStage stage = *std::move(begun);
    const auto tree = stage.open_tree();
    if (!tree) return give_up(stage, tree.error());
    const auto copied = copy_snapshot(*snapshot, stage.folder(), tree->get(), selection_of(order));
    if (!copied) return give_up(stage, copied.error());

    const auto guard = repository.guard(soon(repository));
    if (!guard) return give_up(stage, guard.error());
    if (auto is_free = expect_free_name(repository, order.worktree_id); !is_free)
        return give_up(stage, is_free.error());
    const auto places = places_of(repository, stage);
    if (!places) return give_up(stage, places.error());
    if (auto known = set_fresh_id(stage, *places); !known) return give_up(stage, known.error());
    if (auto saved = stage.save(*guard); !saved) return std::unexpected(saved.error());
    if (const auto moved = exchange_trees(stage, *places); !moved) {
        if (moved.error().code == Errc::outcome_unknown) return std::unexpected(moved.error());
        return give_up(stage, moved.error());
    }
    if (auto recorded = record_restored(repository, *guard, stage, order.actor); !recorded)
        return std::unexpected(recorded.error());
    if (auto discarded = stage.discard(); !discarded) return std::unexpected(discarded.error());
    return *copied;
}

Result<InPlaceRestored> restore_in_place(const Repository& repository, const RestoreOrder& order,
                                         const InPlaceTerms& terms) {
    return InPlace(repository, order, terms).run();
}

}  // namespace holdfast::guards::worktree
