#pragma once

#include "guards/worktree/repository.hpp"
#include "holdfast/error.hpp"
#include "holdfast/store.hpp"
#include "json/worktree_report.hpp"

#include <functional>
#include <stop_token>
#include <string>

namespace holdfast::guards::worktree {

struct DoctorOptions {
    bool is_strict = false;  ///< Also reads every object of every snapshot and compares its hash.
    bool fixes = false;      ///< Repairs what is safe to repair.
    Store* locks = nullptr;  ///< Of the repository's locks.
    std::string actor{};
    std::stop_token stop{};
    std::function<void(const std::string& snapshot_id, std::uint64_t verified)> progress{};
};

/// Looks at everything that a repository keeps.
///
/// What a dead process left is removed or finished: unfinished snapshots, restores that were begun, temporary files,
/// and leases that have run out. What is damaged is named and never touched, since it may be all that is left.
[[nodiscard]] Result<json::WorktreeExamination> examine(const Repository& repository, const DoctorOptions& options);

/// What in `.holdfast` belongs to running programs: a backup or a copy of a repository needs none of it.
[[nodiscard]] const std::vector<std::string>& runtime_state();

}  // namespace holdfast::guards::worktree
