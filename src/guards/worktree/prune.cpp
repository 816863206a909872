#include "guards/worktree/prune.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/restore_stage.hpp"
#include "guards/worktree/snapshot_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

constexpr std::chrono::seconds patience{30};

/// What must stay, and for whom.
using Needed = std::map<std::string, std::string>;

Result<Needed> needed_snapshots(const Repository& repository) {
    Needed needed;
    const auto registry = repository.registry();
    if (!registry) return std::unexpected(registry.error());
    const auto intents = repository.intents();
    if (!intents) return std::unexpected(intents.error());
    const auto restores = restore_intents(repository);
    if (!restores) return std::unexpected(restores.error());
    for (const json::RestoreIntent& each : *restores) {
        needed[each.snapshot_id] = "a restore that is not finished";
        needed[each.undo_id] = "the way back of a restore that is not finished";
    }
    for (const json::SnapshotIntent& each : *intents) {
        needed[each.parent_id] = "the base of a snapshot that is being taken";
        needed[each.snapshot_id] = "a snapshot that is being published";
    }
    for (const WorktreeRow& row : registry->worktrees) needed[row.head] = "the head of " + row.worktree_id;
    return needed;
}

/// Those of `all`, the oldest first, that no rule keeps. Their order is that of their ids: the times that they were
/// taken at may have gone back.
std::vector<json::SnapshotDescriptor> beyond(const PruneRules& rules, std::vector<json::SnapshotDescriptor> all,
                                             Instant now) {
    if (rules.keep_last) all.resize(all.size() - std::min<std::size_t>(all.size(), *rules.keep_last));
    if (rules.keep_within)
        std::erase_if(all, [&](const auto& each) { return each.created_at >= now - *rules.keep_within; });
    return all;
}

class Pruning {
public:
    Pruning(const Repository& repository, std::string actor) : repository_(repository), actor_(std::move(actor)) {}

    /// Why it stays; empty if it went.
    Result<std::string> remove(const json::SnapshotDescriptor& descriptor) {
        const std::string& id = descriptor.snapshot_id;
        const auto snapshots = repository_.open_control("snapshots");
        if (!snapshots) return std::unexpected(snapshots.error());
        const std::string going = std::string(unfinished) + id;
        // Locked until it is gone, so that nobody takes it for the remains of a dead process.
        std::optional<base::Fd> folder;
        {
            const auto guard = repository_.guard(Deadline::in(repository_.clock(), patience));
            if (!guard) return std::unexpected(guard.error());
            // Looked at again: it may be the head by now.
            const auto needed = needed_snapshots(repository_);
            if (!needed) return std::unexpected(needed.error());
            if (const auto why = needed->find(id); why != needed->end()) return why->second;
            auto opened = open_if_unused(snapshots->get(), id, "snapshots/" + id);
            if (!opened) return std::unexpected(opened.error());
            if (!*opened) return "it is being read";
            folder = *std::move(opened);
            if (auto hidden = hide(*guard, descriptor, snapshots->get(), going); !hidden)
                return std::unexpected(hidden.error());
        }
        if (auto removed = remove_tree(snapshots->get(), going); !removed) return std::unexpected(removed.error());
        return "";
    }

private:
    /// The log first, so that nothing goes that it does not tell of; then the one rename that makes it invisible.
    Result<void> hide(const Guard& guard, const json::SnapshotDescriptor& descriptor, int snapshots,
                      const std::string& going) {
        const std::string& id = descriptor.snapshot_id;
        json::WorktreeEvent event;
        event.event = "snapshot_pruned";
        event.worktree_id = descriptor.worktree_id;
        event.snapshot_id = id;
        event.actor = actor_;
        if (auto told = repository_.append_audit(guard, std::move(event)); !told) return told;
        if (renameat2(snapshots, id.c_str(), snapshots, going.c_str(), 0) != 0)
            return std::unexpected(base::os_error(errno, "remove the snapshot " + id));
        if (auto synced = sync_folder(snapshots, "snapshots"); !synced) return synced;
        const auto descriptors = repository_.open_control("descriptors");
        if (!descriptors) return std::unexpected(descriptors.error());
        if (auto removed = remove_tree(descriptors->get(), id + ".json"); !removed) return removed;
        return sync_folder(descriptors->get(), "descriptors");
    }

    const Repository& repository_;
    const std::string actor_;
};

}  // namespace

Result<SnapshotPrune> prune_snapshots(const Repository& repository, const std::string& worktree_id,
                                      const PruneRules& rules, PruneHow how, const std::string& actor) {
    if (!rules.keep_last && !rules.keep_within)
        return fail(Errc::usage, "say what stays, with --keep-last N, --keep-within D, or both");
    auto all = repository.snapshots();
    if (!all) return std::unexpected(all.error());
    std::erase_if(*all, [&](const auto& each) { return each.worktree_id != worktree_id; });
    const auto needed = needed_snapshots(repository);
    if (!needed) return std::unexpected(needed.error());
    SnapshotPrune result;
    Pruning pruning(repository, actor);
    for (json::SnapshotDescriptor& each : beyond(rules, *std::move(all), repository.clock().wall())) {
        std::string why;
        if (const auto found = needed->find(each.snapshot_id); found != needed->end()) {
            why = found->second;
        } else if (how == PruneHow::remove) {
            auto removed = pruning.remove(each);
            if (!removed) return std::unexpected(removed.error());
            why = *std::move(removed);
        }
        if (why.empty())
            result.removed.push_back(std::move(each));
        else
            result.kept.push_back({each.snapshot_id, why});
    }
    return result;
}

}  // namespace holdfast::guards::worktree
