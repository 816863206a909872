#pragma once

#include "guards/worktree/repository.hpp"
#include "holdfast/error.hpp"
#include "json/worktree_report.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::guards::worktree {

/// Which snapshots of a worktree stay: what either rule keeps.
struct PruneRules {
    std::optional<std::uint64_t> keep_last{};                ///< The newest so many.
    std::optional<std::chrono::milliseconds> keep_within{};  ///< Those that are not older.
};

struct SnapshotPrune {
    std::vector<json::SnapshotDescriptor> removed{};  ///< The oldest first.
    std::vector<json::SnapshotKept> kept{};           ///< What the rules would have removed, and somebody needs.
};

enum class PruneHow { only_tell, remove };

/// Removes snapshots of a worktree. Never a head, the base of a snapshot that is being taken, the way back of a restore
/// that is not finished, or what another process is reading. Each goes in one step: it is there, or it is not.
[[nodiscard]] Result<SnapshotPrune> prune_snapshots(const Repository& repository, const std::string& worktree_id,
                                                    const PruneRules& rules, PruneHow how, const std::string& actor);

}  // namespace holdfast::guards::worktree
