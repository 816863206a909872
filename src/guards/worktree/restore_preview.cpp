#include "guards/worktree/exclusions.hpp"
#include "guards/worktree/restore.hpp"
#include "guards/worktree/restore_excluded.hpp"

namespace holdfast::guards::worktree {
namespace {

/// What a restore would make of a snapshot: without what it leaves alone, and without what it cannot make.
class Restorable final : public EntrySource {
public:
    Restorable(std::unique_ptr<EntrySource> all, const ExcludedThings& excluded)
        : all_(std::move(all)), excluded_(excluded) {}

    Result<std::optional<Entry>> next() override {
        for (;;) {
            auto entry = all_->next();
            if (!entry || !*entry) return entry;
            if (!covered_.empty() && is_at_or_beneath((*entry)->path, covered_)) continue;
            if (auto room = excluded_.expect_room(**entry); !room) return std::unexpected(room.error());
            const Kind kind = (*entry)->kind;
            if (kind == Kind::socket || kind == Kind::block_device || kind == Kind::character_device) continue;
            if ((*entry)->path.empty() || !excluded_.covers(**entry)) return entry;
            covered_ = (*entry)->path;
        }
    }
    Result<void> hash(Entry& entry, const Entry& known) override { return all_->hash(entry, known); }

private:
    std::unique_ptr<EntrySource> all_;
    const ExcludedThings& excluded_;
    std::string covered_{};
};

}  // namespace

Result<void> preview_in_place(const Repository& repository, const RestoreOrder& order,
                              const std::function<Result<void>(const Difference&)>& each) {
    const auto snapshot = SnapshotReader::open(repository, order.snapshot);
    if (!snapshot) return std::unexpected(snapshot.error());
    const auto root = repository.open_worktree(order.worktree_id);
    if (!root) return std::unexpected(root.error());
    const auto exclusions = Exclusions::of(root->get());
    if (!exclusions) return std::unexpected(exclusions.error());
    const auto workplace = workplace_for(repository, order.worktree_id, true);
    if (!workplace) return std::unexpected(workplace.error());
    const auto excluded =
        ExcludedThings::in(root->get(), "", *exclusions, order.stop, at_the_top(*workplace, order.path));
    if (!excluded) return std::unexpected(excluded.error());
    auto all = entries_of(*snapshot);
    if (!all) return std::unexpected(all.error());
    Restorable newer(*std::move(all), *excluded);
    const auto older = entries_of(root->get(), {.exclusions = &*exclusions, .stop = order.stop, .may_move = true});
    return compare(*older, newer, [&](const Difference& difference) -> Result<void> {
        return is_at_or_beneath(difference.entry.path, order.path) ? each(difference) : Result<void>();
    });
}

}  // namespace holdfast::guards::worktree
