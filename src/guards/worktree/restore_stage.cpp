#include "guards/worktree/restore_stage.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/snapshot_reader.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

constexpr std::string_view intent_prefix = "restore-";
constexpr std::string_view intent_suffix = ".json";

bool exists(int folder, const std::string& name) {
    struct stat facts{};
    return fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

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
    if (const auto tree = make_folder((*folder)->get(), staged_tree, staged_tree); !tree)
        return std::unexpected(tree.error());
    RestoreStage stage(repository, std::move(intent), *std::move(stages), *std::move(*folder));
    auto tree = stage.open_tree();
    if (!tree) return std::unexpected(tree.error());
    if (auto synced = sync_folder(stage.stages_.get(), stages_folder); !synced) return std::unexpected(synced.error());
    if (auto saved = stage.save(guard); !saved) return std::unexpected(saved.error());
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

Result<base::Fd> RestoreStage::open_tree() const { return open_folder_at(folder(), staged_tree, staged_tree); }

Result<void> RestoreStage::save(const Guard&) const {
    const auto intents = repository_->open_control("intents");
    if (!intents) return std::unexpected(intents.error());
    return write_text(intents->get(), restore_intent_file(intent.restore_id),
                      json::restore_intent(intent).done().written() + "\n");
}

Result<void> RestoreStage::discard() const {
    if (auto removed = remove_tree(stages_.get(), intent.restore_id); !removed) return removed;
    const auto intents = repository_->open_control("intents");
    if (!intents) return std::unexpected(intents.error());
    // The intent goes last: as long as it is there, the rest is found.
    if (auto synced = sync_folder(stages_.get(), stages_folder); !synced) return synced;
    if (auto removed = remove_tree(intents->get(), restore_intent_file(intent.restore_id)); !removed) return removed;
    return sync_folder(intents->get(), "intents");
}

Result<std::string> RestoreStage::keep(const Guard&) const {
    const std::string kept = std::string(kept_stage) + intent.restore_id;
    if (renameat(stages_.get(), intent.restore_id.c_str(), stages_.get(), kept.c_str()) != 0)
        return std::unexpected(base::os_error(errno, "keep the old tree"));
    if (auto synced = sync_folder(stages_.get(), stages_folder); !synced) return std::unexpected(synced.error());
    const auto intents = repository_->open_control("intents");
    if (!intents) return std::unexpected(intents.error());
    if (auto removed = remove_tree(intents->get(), restore_intent_file(intent.restore_id)); !removed)
        return std::unexpected(removed.error());
    return fmt::format("{}/{}/{}/{}", repository_->root(), control_folder, stages_folder, kept);
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
