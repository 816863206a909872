#include "guards/worktree/restore_stage.hpp"

#include "base/os_error.hpp"
#include "base/ownership.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/snapshot_reader.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

constexpr std::string_view intent_prefix = "restore-";
constexpr std::string_view intent_suffix = ".json";

using Workplace = json::RestoreIntent::Workplace;

bool exists(int folder, const std::string& name) {
    struct stat facts{};
    return fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

std::string place_name(const json::RestoreIntent& intent) { return std::string(restore_place) + intent.restore_id; }

}  // namespace

std::string restore_intent_file(const std::string& restore_id) {
    return fmt::format("{}{}{}", intent_prefix, restore_id, intent_suffix);
}

Result<RestoreStage> RestoreStage::begin(const Repository& repository, const Guard& guard, json::RestoreIntent intent) {
    if (const auto made = make_folder(repository.control_fd(), stages_folder, stages_folder); !made)
        return std::unexpected(made.error());
    auto stages = repository.open_control(stages_folder);
    if (!stages) return std::unexpected(stages.error());
    const std::string id = intent.restore_id;
    const auto made = make_folder(stages->get(), id, id);
    if (!made) return std::unexpected(made.error());
    auto folder = open_if_unused(stages->get(), id, id);
    if (!folder) return std::unexpected(folder.error());
    if (!*made || !*folder) return fail(Errc::store_unavailable, "another restore has the same id; try again");
    RestoreStage stage(repository, std::move(intent), *std::move(stages), *std::move(*folder));
    if (auto synced = sync_folder(stage.stages_.get(), stages_folder); !synced) return std::unexpected(synced.error());
    // The intent comes before anything outside of the control folder.
    if (auto saved = stage.save(guard); !saved) return std::unexpected(saved.error());
    if (auto placed = stage.make_places(); !placed) {
        static_cast<void>(stage.discard());
        return std::unexpected(placed.error());
    }
    return stage;
}

Result<std::optional<RestoreStage>> RestoreStage::take_over(const Repository& repository, const Guard&,
                                                            json::RestoreIntent intent) {
    auto stages = repository.open_control(stages_folder);
    if (!stages) return std::unexpected(stages.error());
    if (!exists(stages->get(), intent.restore_id))
        return std::optional<RestoreStage>(RestoreStage(repository, std::move(intent), *std::move(stages), base::Fd()));
    auto folder = open_if_unused(stages->get(), intent.restore_id, intent.restore_id);
    if (!folder) return std::unexpected(folder.error());
    if (!*folder) return std::nullopt;
    return std::optional<RestoreStage>(
        RestoreStage(repository, std::move(intent), *std::move(stages), *std::move(*folder)));
}

Result<void> RestoreStage::make_places() const {
    if (intent.workplace != Workplace::control) {
        const auto outside = open_outside();
        if (!outside) return std::unexpected(outside.error());
        if (!*outside) return fail(Errc::usage, "the worktree " + intent.worktree_id + " has no folder");
        if (const auto made = make_folder((*outside)->get(), place_name(intent), place_name(intent)); !made)
            return std::unexpected(made.error());
    }
    const auto workplace = open_workplace();
    if (!workplace) return std::unexpected(workplace.error());
    const auto tree = make_folder(workplace->get(), staged_tree, staged_tree);
    return tree ? Result<void>() : std::unexpected(tree.error());
}

Result<std::optional<base::Fd>> RestoreStage::open_outside() const {
    if (intent.workplace == Workplace::worktree && !exists(repository_->root_fd(), intent.worktree_id))
        return std::nullopt;
    auto folder = intent.workplace == Workplace::worktree ? repository_->open_worktree(intent.worktree_id)
                                                          : open_beneath(repository_->root_fd(), "");
    if (!folder) return std::unexpected(folder.error());
    return std::optional<base::Fd>(*std::move(folder));
}

bool RestoreStage::has_workplace() const {
    if (intent.workplace == Workplace::control) return folder() >= 0;
    const auto outside = open_outside();
    if (!outside || !*outside) return false;
    const auto place = open_folder_at((*outside)->get(), place_name(intent), workplace_path());
    if (!place) return false;
    // Others may be allowed to write into a worktree, and could have put a folder of theirs there.
    const auto facts = base::facts_of(place->get(), workplace_path());
    return facts && base::expect_our_folder(*facts, workplace_path());
}

Result<base::Fd> RestoreStage::open_workplace() const {
    if (intent.workplace == Workplace::control) return open_beneath(folder(), "");
    if (!has_workplace())
        return fail(Errc::store_unavailable,
                    fmt::format("{} of a restore that is not finished is not there; mount the file system of {} again",
                                printable(workplace_path()), printable(intent.worktree_id)));
    const auto outside = open_outside();
    if (!outside) return std::unexpected(outside.error());
    return open_folder_at((*outside)->get(), place_name(intent), workplace_path());
}

std::string RestoreStage::workplace_path() const {
    switch (intent.workplace) {
        case Workplace::control: break;
        case Workplace::repository: return fmt::format("{}/{}", repository_->root(), place_name(intent));
        case Workplace::worktree:
            return fmt::format("{}/{}/{}", repository_->root(), intent.worktree_id, place_name(intent));
    }
    return fmt::format("{}/{}/{}/{}", repository_->root(), control_folder, stages_folder, intent.restore_id);
}

Result<base::Fd> RestoreStage::open_tree() const {
    const auto workplace = open_workplace();
    if (!workplace) return std::unexpected(workplace.error());
    return open_folder_at(workplace->get(), staged_tree, staged_tree);
}

Result<void> RestoreStage::save(const Guard&) const {
    const auto intents = repository_->open_control("intents");
    if (!intents) return std::unexpected(intents.error());
    return write_text(intents->get(), restore_intent_file(intent.restore_id),
                      json::restore_intent(intent).done().written() + "\n");
}

Result<void> RestoreStage::remove_outside() const {
    const auto outside = open_outside();
    if (!outside || !*outside) return outside ? Result<void>() : std::unexpected(outside.error());
    if (!has_workplace()) return {};
    const int folder = (*outside)->get();
    struct stat before{};
    if (fstat(folder, &before) != 0) return std::unexpected(base::os_error(errno, "look at " + workplace_path()));
    if (auto removed = remove_tree(folder, place_name(intent)); !removed) return removed;
    // Its time is that of the tree, and not that of our folder in it.
    const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, before.st_mtim};
    static_cast<void>(futimens(folder, times.data()));
    return sync_folder(folder, workplace_path());
}

Result<void> RestoreStage::remove_intent() const {
    const auto intents = repository_->open_control("intents");
    if (!intents) return std::unexpected(intents.error());
    if (auto removed = remove_tree(intents->get(), restore_intent_file(intent.restore_id)); !removed) return removed;
    return sync_folder(intents->get(), "intents");
}

Result<void> RestoreStage::discard() const {
    if (intent.workplace != Workplace::control)
        if (auto removed = remove_outside(); !removed) return removed;
    if (auto removed = remove_tree(stages_.get(), intent.restore_id); !removed) return removed;
    // The intent goes last: as long as it is there, the rest is found.
    if (auto synced = sync_folder(stages_.get(), stages_folder); !synced) return synced;
    return remove_intent();
}

/// The new name comes first: if its process dies then, the next one finds nothing at the old one, and goes on.
Result<std::string> RestoreStage::keep_outside() const {
    const auto outside = open_outside();
    if (!outside) return std::unexpected(outside.error());
    const std::string kept = std::string(kept_place) + intent.restore_id;
    if (*outside && renameat((*outside)->get(), place_name(intent).c_str(), (*outside)->get(), kept.c_str()) != 0 &&
        errno != ENOENT)
        return std::unexpected(base::os_error(errno, "keep the old tree"));
    const std::string path = workplace_path();
    return path.substr(0, path.size() - place_name(intent).size()) + kept;
}

Result<std::string> RestoreStage::keep(const Guard&) const {
    std::string path;
    if (intent.workplace == Workplace::control) {
        const std::string kept = std::string(kept_stage) + intent.restore_id;
        if (renameat(stages_.get(), intent.restore_id.c_str(), stages_.get(), kept.c_str()) != 0)
            return std::unexpected(base::os_error(errno, "keep the old tree"));
        if (auto synced = sync_folder(stages_.get(), stages_folder); !synced) return std::unexpected(synced.error());
        path = fmt::format("{}/{}/{}/{}", repository_->root(), control_folder, stages_folder, kept);
    } else {
        auto kept = keep_outside();
        if (!kept) return kept;
        path = *std::move(kept);
    }
    // Outside, only what the restore needed for itself is left in the stage.
    const auto ended = intent.workplace == Workplace::control ? remove_intent() : discard();
    if (!ended) return std::unexpected(ended.error());
    return path;
}

Result<Workplace> workplace_for(const Repository& repository, const std::string& worktree_id, bool is_in_place) {
    const auto control = mount_of(repository.control_fd(), control_folder);
    const auto root = mount_of(repository.root_fd(), repository.root());
    if (!control) return std::unexpected(control.error());
    if (!root) return std::unexpected(root.error());
    if (!is_in_place) return *control == *root ? Workplace::control : Workplace::repository;
    const auto folder = repository.open_worktree(worktree_id);
    if (!folder) return std::unexpected(folder.error());
    const auto live = mount_of(folder->get(), worktree_id);
    if (!live) return std::unexpected(live.error());
    if (*live != *root) return Workplace::worktree;
    return *control == *root ? Workplace::control : Workplace::repository;
}

bool is_by_names(Workplace workplace, const std::string& path) {
    return workplace == Workplace::worktree && path.empty();
}

Result<std::vector<json::RestoreIntent>> restore_intents(const Repository& repository) {
    const auto folder = repository.open_control("intents");
    if (!folder) return std::unexpected(folder.error());
    const auto names = names_in(folder->get(), "intents");
    if (!names) return std::unexpected(names.error());
    std::vector<json::RestoreIntent> intents;
    for (const std::string& name : *names) {
        if (!name.starts_with(intent_prefix) || !name.ends_with(intent_suffix)) continue;
        const auto text = read_text(folder->get(), name);
        if (!text) return std::unexpected(text.error());
        if (!*text) continue;
        const auto node = json::parse(**text);
        auto intent = node ? json::read_restore_intent(*node) : std::unexpected(node.error());
        // The names become parts of paths.
        if (intent && is_snapshot_id(intent->restore_id) && name == restore_intent_file(intent->restore_id) &&
            worktree_id_of(intent->worktree_id))
            intents.push_back(*std::move(intent));
    }
    return intents;
}

}  // namespace holdfast::guards::worktree
