#pragma once

#include "holdfast/error.hpp"
#include "json/value.hpp"
#include "json/worktree.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What `holdfast worktree doctor`, `diff`, `ls`, `prune` and `restore` answer.
namespace holdfast::json {

/// `info`: nothing has to be done. `warning`: a dead process left something, and `doctor --fix` removes it. `error`:
/// something is damaged.
enum class Severity { info, warning, error };

struct WorktreeFinding {
    std::string category{};  ///< `orphan_temporary`, `payload_hash_mismatch`…
    Severity severity = Severity::error;
    std::string path{};  ///< In `.holdfast`, or a worktree.
    std::string description{};
    Errc code = Errc::store_unsafe;
    bool is_fixed = false;
};

struct WorktreeExamination {
    std::vector<WorktreeFinding> findings{};
    std::uint64_t snapshots = 0;
    std::uint64_t verified = 0;  ///< Objects whose hash was compared; only of a strict one.
    std::uint64_t events = 0;    ///< Of the audit log.
    [[nodiscard]] bool is_healthy() const;
};
[[nodiscard]] std::string_view name_of(Severity severity);
/// `{"healthy","strict","snapshots","verified","events","findings":[…],"runtime_state":[…]}`
[[nodiscard]] Object worktree_examination(const WorktreeExamination& examination, bool is_strict,
                                          const std::vector<std::string>& runtime_state);

/// A snapshot that a rule would have removed, and somebody needs.
struct SnapshotKept {
    std::string snapshot_id{};
    std::string why{};
};
/// `{"worktree_id","dry_run","removed":[…snapshots…],"kept":[{"snapshot_id","why"}]}`
[[nodiscard]] Object snapshots_pruned(std::string_view worktree_id, const std::vector<SnapshotDescriptor>& removed,
                                      const std::vector<SnapshotKept>& kept, bool only_tell);

/// One path that is not the same in two trees.
struct PathChange {
    std::string path{};
    std::string change{};  ///< `added`, `deleted`, `content`, `metadata`, `type`
};
/// `{"added":[…],"changed":[{"path","change"}],"deleted":[…]}`
[[nodiscard]] Object path_changes(const std::vector<PathChange>& changes);

/// What a restore did: `{"restored","worktree_id","path","entries","files","bytes","special",…}`.
struct RestoreReport {
    std::string snapshot_id{};
    std::string worktree_id{};
    std::string path{};
    std::uint64_t entries = 0;
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
    std::uint64_t special = 0;
    bool is_in_place = false;
    std::string undo_id{};
    std::uint64_t carried_over = 0;
    std::string kept{};
    std::vector<std::string> processes{};
};
[[nodiscard]] Object restore_report(const RestoreReport& report);

/// One entry of `worktree ls`.
struct ListedEntry {
    std::string path{};
    std::string_view type{};
    std::uint32_t mode = 0;
    std::uint32_t owner = 0;
    std::uint32_t group = 0;
    std::uint64_t size = 0;
    Instant mtime{};
    std::string target{};
    std::string sha256{};
};
[[nodiscard]] Object listed_entry(const ListedEntry& entry);

}  // namespace holdfast::json
