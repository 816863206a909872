#include "guards/worktree/repository.hpp"

#include "base/os_error.hpp"
#include "base/ownership.hpp"
#include "base/private_mode.hpp"
#include "guards/worktree/audit_chain.hpp"
#include "guards/worktree/files.hpp"
#include "values/hex.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::guards::worktree {
namespace {

constexpr auto guard_file = "guard";
constexpr std::array control_folders{"locks", "snapshots", "descriptors", "intents"};
constexpr std::size_t time_digits = 13;
constexpr std::size_t chance_digits = 8;

Result<json::Node> parsed(const std::string& text, const std::string& where) {
    auto node = json::parse(text);
    if (!node) return fail(Errc::record_corrupt, fmt::format("{} cannot be read: {}", where, node.error().message));
    return node;
}

/// A document that cannot be read is damage, and no mistake of the caller.
template <class T>
Result<T> read_as(const std::string& text, const std::string& where, Result<T> (*read)(const json::Node&)) {
    const auto node = parsed(text, where);
    if (!node) return std::unexpected(node.error());
    auto value = read(*node);
    if (!value && value.error().code == Errc::usage)
        return fail(Errc::record_corrupt, fmt::format("{} cannot be read: {}", where, value.error().message));
    return value;
}

Result<std::string> absolute(const std::string& folder) {
    std::error_code error;
    const auto path = std::filesystem::canonical(folder, error);
    if (error) return std::unexpected(base::os_error(error.value(), "open the folder " + printable(folder)));
    return path.string();
}

Result<void> expect_ours(int fd, const std::string& path) {
    const auto facts = base::facts_of(fd, path);
    if (!facts) return std::unexpected(facts.error());
    return base::expect_our_folder(*facts, path);
}

}  // namespace

std::string new_snapshot_id(Instant now) {
    const auto bytes = LockId::random().bytes();
    return fmt::format("{:013}-{}", now.time_since_epoch().count(), to_hex(std::span(bytes).first(chance_digits / 2)));
}

bool is_snapshot_id(std::string_view text) {
    const auto all_of = [](std::string_view part, std::string_view letters) {
        return part.find_first_not_of(letters) == std::string_view::npos;
    };
    return text.size() == time_digits + 1 + chance_digits && text[time_digits] == '-' &&
           all_of(text.substr(0, time_digits), "0123456789") &&
           all_of(text.substr(time_digits + 1), "0123456789abcdef");
}

Instant time_of_id(std::string_view id) {
    std::int64_t milliseconds = 0;
    std::from_chars(id.data(), id.data() + time_digits, milliseconds);
    return Instant{std::chrono::milliseconds{milliseconds}};
}

bool is_restore_place(std::string_view name) {
    for (const std::string_view prefix : {restore_place, kept_place})
        if (name.starts_with(prefix) && is_snapshot_id(name.substr(prefix.size()))) return true;
    return false;
}

Result<std::string> worktree_id_of(std::string_view folder_name) {
    while (folder_name.size() > 1 && folder_name.ends_with('/')) folder_name.remove_suffix(1);
    if (folder_name.starts_with("./")) folder_name.remove_prefix(2);
    if (folder_name.empty() || folder_name.front() == '.' || folder_name.find('/') != std::string_view::npos)
        return fail(Errc::name_invalid,
                    "a worktree is a folder directly in the repository, and its name does not begin with a dot");
    if (const auto name = LockName::parse(fmt::format("worktree/{}", folder_name)); !name)
        return std::unexpected(name.error());
    return std::string(folder_name);
}

LockName lock_of(const std::string& worktree_id) {
    auto name = LockName::parse("worktree/" + worktree_id);
    // Every id went through `worktree_id_of`.
    if (!name) std::abort();
    return *std::move(name);
}

Result<Repository> Repository::create(const std::string& root, const Clock& clock) {
    const auto path = absolute(root);
    if (!path) return std::unexpected(path.error());
    const auto folder = open_folder(*path);
    if (!folder) return std::unexpected(folder.error());
    const auto made = make_folder(folder->get(), control_folder, *path + "/" + control_folder);
    if (!made) return std::unexpected(made.error());
    const auto control = open_folder_at(folder->get(), control_folder, *path + "/" + control_folder);
    if (!control) return std::unexpected(control.error());
    if (auto ours = expect_ours(control->get(), *path + "/" + control_folder); !ours)
        return std::unexpected(ours.error());
    if (*made)
        if (auto set = base::set_private_mode(folder->get(), control_folder, 0700, *path); !set)
            return std::unexpected(set.error());
    for (const char* name : control_folders)
        if (const auto inner = make_folder(control->get(), name, name); !inner) return std::unexpected(inner.error());
    const auto text = read_text(control->get(), registry_file);
    if (!text) return std::unexpected(text.error());
    if (!*text) {
        // If two processes do this at the same time, the registry of the first one stays.
        Repository fresh(*path, base::Fd(dup(folder->get())), base::Fd(dup(control->get())), clock);
        const auto guard = fresh.guard(Deadline::in(clock, std::chrono::seconds{10}));
        if (!guard) return std::unexpected(guard.error());
        const auto again = read_text(control->get(), registry_file);
        if (!again) return std::unexpected(again.error());
        if (!*again) {
            WorktreeRegistry registry;
            registry.repository_id = StoreId::random().text();
            if (auto written = fresh.write_registry(*guard, registry); !written)
                return std::unexpected(written.error());
            if (auto synced = sync_folder(folder->get(), *path); !synced) return std::unexpected(synced.error());
        }
    }
    return find(*path, clock);
}

Result<Repository> Repository::find(const std::string& folder, const Clock& clock) {
    auto path = absolute(folder);
    if (!path) return std::unexpected(path.error());
    for (std::filesystem::path at = *path;; at = at.parent_path()) {
        base::Fd root(open(at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        struct stat facts{};
        const std::string control_path = (at / control_folder).string();
        if (root && fstatat(root.get(), control_folder, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(facts.st_mode) &&
            fstatat(root.get(), (std::string(control_folder) + "/" + registry_file).c_str(), &facts,
                    AT_SYMLINK_NOFOLLOW) == 0) {
            auto control = open_folder_at(root.get(), control_folder, control_path);
            if (!control) return std::unexpected(control.error());
            if (auto ours = expect_ours(control->get(), control_path); !ours) return std::unexpected(ours.error());
            Repository repository(at.string(), std::move(root), *std::move(control), clock);
            // So that a newer format is refused before anything is done.
            if (auto known = repository.registry(); !known) return std::unexpected(known.error());
            return repository;
        }
        if (!at.has_relative_path())
            return fail(Errc::usage,
                        fmt::format("{} is in no repository; make one with: holdfast worktree init", printable(*path)));
    }
}

std::string Repository::store_url() const { return fmt::format("file:{}/{}/locks", root_, control_folder); }

Result<WorktreeRegistry> Repository::registry() const {
    const auto text = read_text(control_fd(), registry_file);
    if (!text) return std::unexpected(text.error());
    if (!*text) return fail(Errc::record_corrupt, std::string(registry_file) + " is not there any more");
    auto registry = read_as(**text, registry_file, json::read_worktree_registry);
    if (!registry) return registry;
    for (const WorktreeRow& row : registry->worktrees)
        if (!worktree_id_of(row.worktree_id))
            return fail(Errc::record_corrupt, std::string(registry_file) + " has a worktree that cannot be one");
    return registry;
}

Result<WorktreeRow> Repository::worktree(const std::string& asked_for, const std::string& folder) const {
    auto known = registry();
    if (!known) return std::unexpected(known.error());
    std::string id = asked_for;
    if (id.empty()) {
        const auto here = absolute(folder);
        if (!here) return std::unexpected(here.error());
        const auto below = std::filesystem::path(*here).lexically_relative(root_);
        if (find_row(*known, below.begin()->string()) != nullptr) id = below.begin()->string();
    }
    if (known->worktrees.empty())
        return fail(Errc::usage, "this repository has no worktree; make one with: holdfast worktree init");
    if (id.empty()) return known->worktrees.front();
    const WorktreeRow* row = find_row(*known, id);
    if (row == nullptr)
        return fail(Errc::usage, fmt::format("this repository has no worktree {}; see: holdfast worktree list",
                                             printable(asked_for)));
    return *row;
}

Result<base::Fd> Repository::open_worktree(const std::string& worktree_id) const {
    return open_folder_at(root_fd(), worktree_id, root_ + "/" + worktree_id);
}

Result<base::Fd> Repository::open_control(const std::string& name) const {
    return open_folder_at(control_fd(), name, fmt::format("{}/{}/{}", root_, control_folder, name));
}

Result<base::Fd> Repository::open_snapshot(const std::string& id) const {
    const auto all = open_control("snapshots");
    if (!all) return std::unexpected(all.error());
    return open_folder_at(all->get(), id, "snapshots/" + id);
}

Result<json::SnapshotDescriptor> Repository::descriptor(const std::string& id) const {
    if (!is_snapshot_id(id)) return fail(Errc::lock_not_held, "no snapshot is called " + printable(id));
    const auto snapshots = open_control("snapshots");
    if (!snapshots) return std::unexpected(snapshots.error());
    const auto descriptors = open_control("descriptors");
    if (!descriptors) return std::unexpected(descriptors.error());
    const auto text = read_text(descriptors->get(), id + ".json");
    if (!text) return std::unexpected(text.error());
    struct stat facts{};
    const auto is_there = [&](const std::string& name) {
        return fstatat(snapshots->get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
    };
    const bool is_published = is_there(id);
    if (!is_published && !*text && !is_there(std::string(unfinished) + id))
        return fail(Errc::lock_not_held, "there is no snapshot " + id);
    const auto partial = [&] {
        return fail(Errc::partial_snapshot, fmt::format("the snapshot {} was never finished", id));
    };
    if (!is_published) return partial();
    const auto folder = open_folder_at(snapshots->get(), id, id);
    if (!folder) return std::unexpected(folder.error());
    const auto ready_text = read_text(folder->get(), ready_file);
    if (!ready_text) return std::unexpected(ready_text.error());
    if (!*ready_text || !*text) return partial();
    const auto ready = read_as(**ready_text, id + "/" + ready_file, json::read_snapshot_ready);
    if (!ready) return std::unexpected(ready.error());
    auto descriptor = read_as(**text, id + ".json", json::read_snapshot_descriptor);
    if (!descriptor) return descriptor;
    if (descriptor->snapshot_id != id || ready->snapshot_id != id ||
        ready->payload_root_hash != descriptor->payload_root_hash)
        return fail(Errc::payload_hash_mismatch,
                    fmt::format("the descriptor and the {} of {} speak of two different snapshots", ready_file, id));
    return descriptor;
}

Result<std::vector<json::SnapshotDescriptor>> Repository::snapshots() const {
    const auto folder = open_control("snapshots");
    if (!folder) return std::unexpected(folder.error());
    const auto names = names_in(folder->get(), "snapshots");
    if (!names) return std::unexpected(names.error());
    std::vector<json::SnapshotDescriptor> finished;
    for (const std::string& name : *names)
        if (is_snapshot_id(name))
            if (auto each = descriptor(name)) finished.push_back(*std::move(each));
    return finished;
}

Result<std::vector<json::SnapshotIntent>> Repository::intents() const {
    const auto folder = open_control("intents");
    if (!folder) return std::unexpected(folder.error());
    const auto names = names_in(folder->get(), "intents");
    if (!names) return std::unexpected(names.error());
    std::vector<json::SnapshotIntent> intents;
    for (const std::string& name : *names) {
        if (!name.ends_with(".json") || !is_snapshot_id(name.substr(0, name.size() - 5))) continue;
        const auto text = read_text(folder->get(), name);
        if (!text) return std::unexpected(text.error());
        if (!*text) continue;
        if (auto intent = read_as(**text, name, json::read_snapshot_intent)) intents.push_back(*std::move(intent));
    }
    return intents;
}

Result<json::SnapshotDescriptor> Repository::snapshot_named(const std::string& text) const {
    if (is_snapshot_id(text)) return descriptor(text);
    const auto all = snapshots();
    if (!all) return std::unexpected(all.error());
    const json::SnapshotDescriptor* found = nullptr;
    for (const auto& each : *all) {
        if (text.empty() || (!each.snapshot_id.starts_with(text) && !each.snapshot_id.ends_with("-" + text))) continue;
        if (found != nullptr)
            return fail(Errc::usage, fmt::format("more than one snapshot begins with {}", printable(text)));
        found = &each;
    }
    if (found == nullptr) return fail(Errc::lock_not_held, "no snapshot is called " + printable(text));
    return *found;
}

Result<Guard> Repository::guard(Deadline deadline) const {
    base::Fd file(openat(control_fd(), guard_file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return std::unexpected(base::os_error(errno, "open the guard of the repository"));
    auto lock = base::FileLock::take(file.get(), *clock_, deadline);
    if (!lock) return std::unexpected(lock.error());
    return Guard(std::move(file), *std::move(lock));
}

Result<void> Repository::write_registry(const Guard&, const WorktreeRegistry& registry) const {
    return write_text(control_fd(), registry_file, json::worktree_registry(registry).done().written() + "\n");
}

Result<WorktreeRow> Repository::add_worktree(const Guard& guard, const std::string& worktree_id, bool is_shared,
                                             const std::string& actor) const {
    auto known = registry();
    if (!known) return std::unexpected(known.error());
    const WorktreeRow* there = find_row(*known, worktree_id);
    if (there != nullptr && there->is_shared != is_shared)
        return fail(Errc::usage, fmt::format("{} is registered as {} already", printable(worktree_id),
                                             there->is_shared ? "shared" : "exclusive"));
    if (mkdirat(root_fd(), worktree_id.c_str(), 0777) != 0 && errno != EEXIST)
        return std::unexpected(base::os_error(errno, "make the folder " + printable(worktree_id)));
    if (const auto folder = open_worktree(worktree_id); !folder) return std::unexpected(folder.error());
    if (there != nullptr) return *there;
    WorktreeRow row;
    row.worktree_id = worktree_id;
    row.is_shared = is_shared;
    row.created_at = clock_->wall();
    known->worktrees.push_back(row);
    if (auto synced = sync_folder(root_fd(), root_); !synced) return std::unexpected(synced.error());
    if (auto written = write_registry(guard, *known); !written) return std::unexpected(written.error());
    json::WorktreeEvent event;
    event.event = "worktree_added";
    event.worktree_id = worktree_id;
    event.actor = actor;
    event.details = is_shared ? "shared" : "exclusive";
    if (auto told = append_audit(guard, std::move(event)); !told) return std::unexpected(told.error());
    return row;
}

Result<void> Repository::append_audit(const Guard&, json::WorktreeEvent event) const {
    event.at = clock_->wall();
    return append_event(control_fd(), std::move(event));
}

const WorktreeRow* find_row(const WorktreeRegistry& registry, const std::string& worktree_id) {
    const auto row = std::ranges::find(registry.worktrees, worktree_id, &WorktreeRow::worktree_id);
    return row == registry.worktrees.end() ? nullptr : &*row;
}

WorktreeRow* find_row(WorktreeRegistry& registry, const std::string& worktree_id) {
    const auto row = std::ranges::find(registry.worktrees, worktree_id, &WorktreeRow::worktree_id);
    return row == registry.worktrees.end() ? nullptr : &*row;
}

}  // namespace holdfast::guards::worktree
