#pragma once

#include "base/fd.hpp"
#include "base/file_lock.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/fence.hpp"
#include "json/worktree.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A repository: a folder with `.holdfast` and worktrees as folders beside it. docs/reference/worktree.md has the
/// layout. What is read here needs no lock; what is changed needs the guard.
namespace holdfast::guards::worktree {

inline constexpr auto control_folder = ".holdfast";
inline constexpr auto registry_file = "worktrees.json";
inline constexpr auto audit_file = "audit.jsonl";
inline constexpr auto payload_folder = "payload";
inline constexpr auto manifest_file = "manifest";
inline constexpr auto ready_file = ".READY";
/// In front of the name of a snapshot that is not finished, and of every file that is being written.
inline constexpr std::string_view unfinished = ".tmp-";

using json::WorktreeRegistry;
using json::WorktreeRow;

/// `1763511900123-8c0ffee1`: the time in milliseconds, and chance. Sorts by time.
[[nodiscard]] std::string new_snapshot_id(Instant now);
/// Whether `text` has the form of an id, so that it can be part of a path.
[[nodiscard]] bool is_snapshot_id(std::string_view text);
/// The time in it. `id` must be one.
[[nodiscard]] Instant time_of_id(std::string_view id);
/// Where a restore works outside of `.holdfast`: a folder `.holdfast-restore-<id>` in a worktree or in the root of the
/// repository; and where it has left an old tree, `.holdfast-kept-<id>`.
inline constexpr std::string_view restore_place = ".holdfast-restore-";
inline constexpr std::string_view kept_place = ".holdfast-kept-";
/// Whether `name` is that of such a folder. They belong to no tree.
[[nodiscard]] bool is_restore_place(std::string_view name);
/// The name of a folder beside `.holdfast`: no slash, no dot in front, and no more than a lock's name can hold. Refused
/// with `name_invalid`.
[[nodiscard]] Result<std::string> worktree_id_of(std::string_view folder_name);
/// `worktree/<worktree_id>`
[[nodiscard]] LockName lock_of(const std::string& worktree_id);

/// The one writer of a repository's control folder, for the moment of a change. The kernel ends it with its process.
class Guard {
public:
    Guard(base::Fd file, base::FileLock lock) : file_(std::move(file)), lock_(std::move(lock)) {}

private:
    base::Fd file_;
    base::FileLock lock_;
};

class Repository {
public:
    /// Makes `.holdfast` in `root`, unless it is there.
    [[nodiscard]] static Result<Repository> create(const std::string& root, const Clock& clock);
    /// The repository that `folder` is in: the nearest `.holdfast` at or above it. `usage` if there is none;
    /// `store_unsafe` if somebody else could change it; `format_unsupported` if it is newer than this program.
    [[nodiscard]] static Result<Repository> find(const std::string& folder, const Clock& clock);

    [[nodiscard]] const std::string& root() const { return root_; }
    [[nodiscard]] int root_fd() const { return root_fd_.get(); }
    [[nodiscard]] int control_fd() const { return control_fd_.get(); }
    [[nodiscard]] const Clock& clock() const { return *clock_; }
    /// `file:/…/.holdfast/locks`
    [[nodiscard]] std::string store_url() const;

    [[nodiscard]] Result<WorktreeRegistry> registry() const;
    /// The worktree that is asked for: by its id if one is named, else the one that `folder` is in, else the first.
    /// `usage` if there is none of that name.
    [[nodiscard]] Result<WorktreeRow> worktree(const std::string& asked_for, const std::string& folder) const;
    /// Its folder. `store_unsafe` if it was replaced by a symbolic link.
    [[nodiscard]] Result<base::Fd> open_worktree(const std::string& worktree_id) const;

    /// Folders in `.holdfast`: `snapshots`, `descriptors`, `intents`.
    [[nodiscard]] Result<base::Fd> open_control(const std::string& name) const;
    /// The folder of a finished snapshot.
    [[nodiscard]] Result<base::Fd> open_snapshot(const std::string& id) const;

    /// A finished snapshot. `partial_snapshot` if it has no `.READY`, `lock_not_held` if there is nothing of that id.
    [[nodiscard]] Result<json::SnapshotDescriptor> descriptor(const std::string& id) const;
    /// All finished snapshots, the oldest first. What cannot be read is passed over: `doctor` names it.
    [[nodiscard]] Result<std::vector<json::SnapshotDescriptor>> snapshots() const;
    /// The intents of snapshots that were begun and not finished.
    [[nodiscard]] Result<std::vector<json::SnapshotIntent>> intents() const;
    /// The descriptor of an id that somebody typed: the whole, or as much of it as tells it from all others.
    [[nodiscard]] Result<json::SnapshotDescriptor> snapshot_named(const std::string& text) const;

    /// Waits for the guard; `store_unavailable` if `deadline` passes first.
    [[nodiscard]] Result<Guard> guard(Deadline deadline) const;

    // Changes. The caller shows the guard that it holds.

    [[nodiscard]] Result<void> write_registry(const Guard&, const WorktreeRegistry& registry) const;
    /// Adds a worktree and makes its folder where it is missing. `usage` if it is registered in another mode already.
    [[nodiscard]] Result<WorktreeRow> add_worktree(const Guard&, const std::string& worktree_id, bool is_shared,
                                                   const std::string& actor) const;
    /// Appends an event. `seq`, `at` and `prev_hash` are filled in. `audit_chain_broken` if the log's end was altered.
    [[nodiscard]] Result<void> append_audit(const Guard&, json::WorktreeEvent event) const;

private:
    Repository(std::string root, base::Fd root_fd, base::Fd control_fd, const Clock& clock)
        : root_(std::move(root)), root_fd_(std::move(root_fd)), control_fd_(std::move(control_fd)), clock_(&clock) {}

    std::string root_;
    base::Fd root_fd_;
    base::Fd control_fd_;
    const Clock* clock_;
};

/// The row of `worktree_id`; null if there is none.
[[nodiscard]] const WorktreeRow* find_row(const WorktreeRegistry& registry, const std::string& worktree_id);
[[nodiscard]] WorktreeRow* find_row(WorktreeRegistry& registry, const std::string& worktree_id);

}  // namespace holdfast::guards::worktree
