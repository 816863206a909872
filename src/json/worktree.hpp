#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"
#include "json/parse.hpp"
#include "json/value.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The documents of a repository of worktrees: what lies in its `.holdfast`, both ways. A reader refuses a newer format
/// with `format_unsupported`, and ignores unknown fields of its own.
namespace holdfast::json {

/// Goes up when an older Holdfast would misunderstand a repository.
inline constexpr std::uint64_t worktree_format = 1;

/// Which holder a worktree was sealed for last. Nobody else publishes into it.
struct WorktreeSeal {
    std::uint64_t token = 0;
    std::string lock_id{};
};

struct WorktreeRow {
    std::string worktree_id{};  ///< The name of its folder; its lock is `worktree/<worktree_id>`.
    bool is_shared = false;     ///< No single-writer rule.
    Instant created_at{};
    std::string head{};  ///< The newest snapshot; empty before the first.
    std::optional<WorktreeSeal> seal{};
};

/// `worktrees.json`.
struct WorktreeRegistry {
    std::string repository_id{};
    std::vector<WorktreeRow> worktrees{};
};
[[nodiscard]] Object worktree_registry(const WorktreeRegistry& registry);
[[nodiscard]] Result<WorktreeRegistry> read_worktree_registry(const Node& node);

/// One worktree, for programs. `high_risk`: it is shared, so nothing keeps two writers apart.
[[nodiscard]] Object worktree(const WorktreeRow& row, std::string_view path);
/// `{"repository_id","worktrees":[…]}`
[[nodiscard]] Object worktrees(const std::vector<Value>& rows, std::string_view repository_id);

/// The same with its lock, under the names of a lock record: `"lock":{"lock_id","worktree_id","holder_id","created_at",
/// "last_renewed_at","lease_expires_at","fencing_token"}`, null when it is free; and `state` and `fencing_token`, which
/// a free lock has, too.
[[nodiscard]] Object worktree_status(const WorktreeRow& row, std::string_view path, const LockStatus& lock);
/// `{"worktree_id","mode","high_risk","snapshots":[…]}`
[[nodiscard]] Object worktree_history(const WorktreeRow& row, const std::vector<Value>& snapshots);

/// `quiesced`: proved to be of one moment. `best_effort`: not.
enum class Consistency { quiesced, best_effort };
[[nodiscard]] std::string_view name_of(Consistency level);
/// Refused with `usage`: an unknown level never becomes another one.
[[nodiscard]] Result<Consistency> consistency_named(std::string_view text);

/// `descriptors/<id>.json`.
struct SnapshotDescriptor {
    std::string snapshot_id{};
    std::string worktree_id{};
    std::string parent_id{};  ///< Empty for the first.
    Instant created_at{};
    std::string message{};
    Consistency consistency = Consistency::quiesced;
    bool is_shared = false;   ///< The worktree had no single-writer rule.
    std::uint64_t token = 0;  ///< Of the lease that it was published under; 0 without one.
    std::string lock_id{};
    std::string holder_id{};
    std::string engine{};  ///< `reflink` or `copy`: how file contents were taken.
    Digest payload_root_hash{};
    Digest manifest_hash{};
    std::uint64_t entries = 0;
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;     ///< Of all files, logically.
    std::uint64_t special = 0;   ///< Sockets and devices: recorded, not copied.
    std::uint64_t excluded = 0;  ///< Subtrees that the exclusion list left out.
};
/// With its checksum as the last field.
[[nodiscard]] Object snapshot_descriptor(const SnapshotDescriptor& descriptor);
/// `payload_hash_mismatch` if the checksum does not fit.
[[nodiscard]] Result<SnapshotDescriptor> read_snapshot_descriptor(const Node& node);
/// The same for people's programs: with `high_risk`, and with `"warning":"best_effort"` where it applies.
[[nodiscard]] Object snapshot_info(const SnapshotDescriptor& descriptor);

/// `intents/<id>.json`: that a snapshot was begun.
struct SnapshotIntent {
    std::string snapshot_id{};
    std::string worktree_id{};
    std::string parent_id{};
    Instant started_at{};
    std::string holder_id{};
    std::uint64_t token = 0;
    std::string lock_id{};
};
[[nodiscard]] Object snapshot_intent(const SnapshotIntent& intent);
[[nodiscard]] Result<SnapshotIntent> read_snapshot_intent(const Node& node);

/// `intents/restore-<id>.json`: that a restore was begun, and how far it got.
struct RestoreIntent {
    /// `copying`: nothing has changed yet. `exchanging`: from now on the new tree may be in place. `settled`: it is,
    /// and the old tree is still whole. `finished`: the old tree may be removed.
    enum class State { copying, exchanging, settled, finished };
    /// Where the new tree is made: in `.holdfast`; or, where no tree can be renamed from there into the place of the
    /// old one, in the root of the repository or in the worktree itself.
    enum class Workplace { control, repository, worktree };
    std::string restore_id{};
    std::string worktree_id{};
    std::string snapshot_id{};
    std::string path{};        ///< In the worktree; empty for all of it.
    std::string top{};         ///< What is exchanged: `path`, or a missing folder on the way to it.
    bool is_in_place = false;  ///< Else the worktree is a new one.
    State state = State::copying;
    Workplace workplace = Workplace::control;
    std::uint64_t inode = 0;  ///< Of the top of the new tree, so that it is known wherever it is.
    std::string undo_id{};    ///< The snapshot that was taken before.
    Instant started_at{};
    std::string holder_id{};
    std::uint64_t token = 0;
    std::string lock_id{};
};
[[nodiscard]] Object restore_intent(const RestoreIntent& intent);
[[nodiscard]] Result<RestoreIntent> read_restore_intent(const Node& node);

/// `.READY`: written last, after everything that it names is on the disk.
struct SnapshotReady {
    std::string snapshot_id{};
    Instant completed_at{};
    Digest payload_root_hash{};
    Digest descriptor_hash{};  ///< SHA-256 of the descriptor file.
};
[[nodiscard]] Object snapshot_ready(const SnapshotReady& ready);
[[nodiscard]] Result<SnapshotReady> read_snapshot_ready(const Node& node);

/// One line of `audit.jsonl`.
struct WorktreeEvent {
    std::uint64_t seq = 0;
    Instant at{};
    std::string event{};  ///< `worktree_added`, `snapshot_published`…
    std::string worktree_id{};
    std::string snapshot_id{};
    std::uint64_t token = 0;
    std::string lock_id{};
    std::string actor{};
    std::string details{};
    Digest prev_hash{};
};
/// With its `hash` as the last field: SHA-256 of the line without it.
[[nodiscard]] Object worktree_event(const WorktreeEvent& event);
struct ReadWorktreeEvent {
    WorktreeEvent event{};
    Digest hash{};
};
/// `audit_chain_broken` if the hash does not fit.
[[nodiscard]] Result<ReadWorktreeEvent> read_worktree_event(const Node& node);

}  // namespace holdfast::json
