#include "guards/worktree/restore_parts.hpp"

#include "base/os_error.hpp"
#include "guards/worktree/copy_file.hpp"
#include "guards/worktree/diff.hpp"
#include "guards/worktree/exchange_names.hpp"
#include "guards/worktree/files.hpp"
#include "guards/worktree/manifest.hpp"
#include "guards/worktree/restore_copy.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>

namespace holdfast::guards::worktree {
namespace {

/// In a workplace: where names wait that a file system cannot exchange in one step.
constexpr auto spare_names = "names";

bool is_folder(const NamedPlace& place) {
    struct stat facts{};
    return fstatat(place.folder, place.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(facts.st_mode);
}

Result<ExchangePlaces> with_workplace(const RestoreStage& stage) {
    auto workplace = stage.open_workplace();
    if (!workplace) return std::unexpected(workplace.error());
    ExchangePlaces places;
    places.workplace = *std::move(workplace);
    places.spare = {places.workplace.get(), moved_away, moved_away};
    return places;
}

Result<ExchangePlaces> places_of_all(const Repository& repository, const RestoreStage& stage) {
    auto begun = with_workplace(stage);
    if (!begun) return begun;
    ExchangePlaces places = *std::move(begun);
    auto live = open_beneath(repository.root_fd(), "");
    if (!live) return std::unexpected(live.error());
    places.live_folder = *std::move(live);
    places.live = {places.live_folder.get(), stage.intent.worktree_id,
                   repository.root() + "/" + stage.intent.worktree_id};
    places.fresh = {places.workplace.get(), staged_tree, staged_tree};
    return places;
}

/// For an exchange name by name.
struct OpenNameFolders {
    base::Fd live{};
    base::Fd fresh{};
    base::Fd spare{};
    [[nodiscard]] NameFolders numbers() const { return {live.get(), fresh.get(), spare.get()}; }
};
Result<OpenNameFolders> name_folders_of(const ExchangePlaces& places) {
    if (const auto made = make_folder(places.workplace.get(), spare_names, spare_names); !made)
        return std::unexpected(made.error());
    auto live = open_folder_at(places.live.folder, places.live.name, places.live.shown);
    auto fresh = open_folder_at(places.fresh.folder, places.fresh.name, places.fresh.shown);
    auto spare = open_folder_at(places.workplace.get(), spare_names, spare_names);
    for (const auto* each : {&live, &fresh, &spare})
        if (!*each) return std::unexpected(each->error());
    return OpenNameFolders{*std::move(live), *std::move(fresh), *std::move(spare)};
}

bool goes_by_names(const RestoreStage& stage) { return is_by_names(stage.intent.workplace, stage.intent.path); }

/// The list of the worktree as it was when the restore began.
Result<Exclusions> exclusions_of(const RestoreStage& stage) {
    const auto text = read_text(stage.folder(), staged_list);
    if (!text) return std::unexpected(text.error());
    return Exclusions::parse(text->value_or(""));
}

/// Whether a file or link of the old tree is what `entry` says of it.
Result<bool> is_same_thing(const NamedPlace& place, const Entry& entry) {
    struct stat facts{};
    if (fstatat(place.folder, place.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) return true;
    const Entry now = entry_of(facts);
    // Its ctime says nothing: the exchange has moved it.
    if (now.kind == Kind::symlink) {
        const auto target = target_of(place.folder, place.name);
        if (!target) return std::unexpected(target.error());
        return entry.kind == now.kind && *target == entry.target;
    }
    if (now.kind != Kind::file) return true;
    const base::Fd file(openat(place.folder, place.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file) return std::unexpected(base::os_error(errno, "read " + printable(place.shown)));
    CopyFacts read;
    const auto hashed = FileCopier(read).hash(file.get(), now.size, place.shown);
    if (!hashed) return std::unexpected(hashed.error());
    return (entry.kind == Kind::file || entry.kind == Kind::hard_link) && now.size == entry.size &&
           hashed->hash == entry.hash;
}

}  // namespace

Result<std::string> top_of(const Repository& repository, const std::string& worktree_id, const std::string& path) {
    auto at = repository.open_worktree(worktree_id);
    if (!at) return std::unexpected(at.error());
    for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
        const auto begin = path.rfind('/', end - 1);
        const std::string name =
            path.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin + 1));
        struct stat facts{};
        if (fstatat(at->get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
            return path.substr(0, end);
        auto next = open_folder_at(at->get(), name, path);
        if (!next) return std::unexpected(next.error());
        at = *std::move(next);
    }
    return path;
}

Result<ExchangePlaces> places_of(const Repository& repository, const RestoreStage& stage) {
    const std::string& top = stage.intent.top;
    if (top.empty()) return places_of_all(repository, stage);
    const auto root = repository.open_worktree(stage.intent.worktree_id);
    if (!root) return std::unexpected(root.error());
    const auto tree = stage.open_tree();
    if (!tree) return std::unexpected(tree.error());
    auto live = place_beneath(root->get(), top);
    auto fresh = place_beneath(tree->get(), top);
    if (!live) return std::unexpected(live.error());
    if (!fresh) return std::unexpected(fresh.error());
    auto begun = with_workplace(stage);
    if (!begun) return begun;
    ExchangePlaces places = *std::move(begun);
    places.top = top;
    places.live_folder = std::move(live->folder);
    places.fresh_folder = std::move(fresh->folder);
    places.live = {places.live_folder.get(), live->name, stage.intent.worktree_id + "/" + top};
    places.fresh = {places.fresh_folder.get(), fresh->name, top};
    return places;
}

Result<void> prepare_exchange(const RestoreStage& stage, const ExchangePlaces& places, const Exclusions& exclusions) {
    if (!goes_by_names(stage)) return {};
    const auto folders = name_folders_of(places);
    if (!folders) return std::unexpected(folders.error());
    // The first thing of a walk is the folder itself, with what is left out in it.
    Walker walker(folders->live.get(), {.exclusions = &exclusions});
    const auto root = walker.next();
    if (!root) return std::unexpected(root.error());
    const auto plan =
        plan_names(folders->numbers(), std::set<std::string>((*root)->left_out.begin(), (*root)->left_out.end()));
    if (!plan) return std::unexpected(plan.error());
    return write_name_plan(stage.folder(), *plan);
}

Result<void> exchange_trees(const RestoreStage& stage, const ExchangePlaces& places) {
    if (!goes_by_names(stage)) return exchange(places.live, places.fresh, places.spare);
    const auto plan = read_name_plan(stage.folder());
    if (!plan) return std::unexpected(plan.error());
    const auto folders = name_folders_of(places);
    if (!folders) return std::unexpected(folders.error());
    return exchange_names(folders->numbers(), *plan);
}

Result<bool> continue_exchange(const RestoreStage& stage, const ExchangePlaces& places) {
    if (!goes_by_names(stage)) return finish_exchange(places.live, places.fresh, places.spare, stage.intent.inode);
    const auto exchanged = exchange_trees(stage, places);
    if (!exchanged && exchanged.error().code == Errc::outcome_unknown) return std::unexpected(exchanged.error());
    return exchanged.has_value();
}

NamedPlace old_place(const ExchangePlaces& places) {
    const auto spare = inode_at(places.spare);
    return spare && *spare ? places.spare : places.fresh;
}

Result<CarriedOver> settle_excluded(const RestoreStage& stage, const ExchangePlaces& places,
                                    const std::vector<std::string>& tops) {
    CarriedOver carried;
    const NamedPlace old = old_place(places);
    // Only folders have something in them that can be left out.
    if (!is_folder(old) || !is_folder(places.live)) return carried;
    const auto from = open_folder_at(old.folder, old.name, old.shown);
    const auto to = open_folder_at(places.live.folder, places.live.name, places.live.shown);
    if (!from) return std::unexpected(from.error());
    if (!to) return std::unexpected(to.error());
    const auto exclusions = exclusions_of(stage);
    if (!exclusions) return std::unexpected(exclusions.error());
    auto known = carry_over(from->get(), to->get(), places.top, tops);
    if (!known) return known;
    // What was made since, and after a crash everything.
    const auto rest = ExcludedThings::in(from->get(), places.top, *exclusions, {});
    if (!rest) return std::unexpected(rest.error());
    auto others = carry_over(from->get(), to->get(), places.top, rest->tops());
    if (!others) return others;
    carried.things = known->things + others->things;
    carried.left_behind = std::move(others->left_behind);
    auto manifest = ManifestReader::open(stage.folder(), manifest_file);
    if (!manifest) return std::unexpected(manifest.error());
    if (auto dressed = dress_parents(to->get(), places.top, *exclusions, *std::move(manifest)); !dressed)
        return std::unexpected(dressed.error());
    if (auto synced = sync_file_system(to->get(), places.live.shown); !synced) return std::unexpected(synced.error());
    return carried;
}

Result<void> record_restored(const Repository& repository, const Guard& guard, RestoreStage& stage,
                             const std::string& actor) {
    const json::RestoreIntent& intent = stage.intent;
    auto registry = repository.registry();
    if (!registry) return std::unexpected(registry.error());
    WorktreeRow* row = find_row(*registry, intent.worktree_id);
    const bool is_new = row == nullptr && !intent.is_in_place;
    if (is_new) {
        WorktreeRow made;
        made.worktree_id = intent.worktree_id;
        made.created_at = repository.clock().wall();
        registry->worktrees.push_back(made);
        row = &registry->worktrees.back();
    }
    // The next snapshot follows the one that the tree is now. Of a tree that is restored in part that is not true.
    if (row != nullptr && intent.path.empty() && row->head != intent.snapshot_id) {
        row->head = intent.snapshot_id;
        if (auto written = repository.write_registry(guard, *registry); !written) return written;
    } else if (is_new) {
        if (auto written = repository.write_registry(guard, *registry); !written) return written;
    }
    json::WorktreeEvent event;
    event.event = intent.is_in_place ? "restored_in_place" : "restored";
    event.worktree_id = intent.worktree_id;
    event.snapshot_id = intent.snapshot_id;
    event.token = intent.token;
    event.lock_id = intent.lock_id;
    event.actor = actor;
    event.details = fmt::format("restore {}{}{}", intent.restore_id, intent.path.empty() ? "" : " of " + intent.path,
                                intent.undo_id.empty() ? "" : ", undo with " + intent.undo_id);
    if (auto told = repository.append_audit(guard, std::move(event)); !told) return told;
    stage.intent.state = json::RestoreIntent::State::settled;
    return stage.save(guard);
}

Result<bool> can_remove_old(const Repository& repository, const RestoreStage& stage, const ExchangePlaces& places) {
    const NamedPlace old = old_place(places);
    if (const auto there = inode_at(old); !there || !*there)
        return there ? Result<bool>(true) : std::unexpected(there.error());
    if (stage.intent.undo_id.empty()) return true;
    const auto undo = repository.descriptor(stage.intent.undo_id);
    if (!undo) return std::unexpected(undo.error());
    const auto before = SnapshotReader::open(repository, *undo);
    if (!before) return std::unexpected(before.error());
    if (!is_folder(old)) {
        const auto listed = entries_of(*before);
        if (!listed) return std::unexpected(listed.error());
        for (;;) {
            const auto entry = (*listed)->next();
            if (!entry) return std::unexpected(entry.error());
            if (!*entry) return false;
            if ((*entry)->path == places.top) return is_same_thing(old, **entry);
        }
    }
    const auto exclusions = exclusions_of(stage);
    if (!exclusions) return std::unexpected(exclusions.error());
    const auto tree = open_folder_at(old.folder, old.name, old.shown);
    if (!tree) return std::unexpected(tree.error());
    const auto left = ExcludedThings::in(tree->get(), places.top, *exclusions, {});
    if (!left) return std::unexpected(left.error());
    if (!left->tops().empty()) return false;
    const auto older = entries_of(*before);
    if (!older) return std::unexpected(older.error());
    const auto newer = entries_of(tree->get(), {.exclusions = &*exclusions, .may_move = true, .at = places.top});
    bool is_same = true;
    auto compared = compare(**older, *newer, [&](const Difference& difference) -> Result<void> {
        // What somebody has deleted meanwhile is in the snapshot, too.
        const bool is_elsewhere = !is_at_or_beneath(difference.entry.path, places.top);
        if (difference.change != Change::deleted && !is_elsewhere && difference.entry.kind != Kind::folder)
            is_same = false;
        return {};
    });
    if (!compared) return std::unexpected(compared.error());
    return is_same;
}

}  // namespace holdfast::guards::worktree
