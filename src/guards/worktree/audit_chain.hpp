#pragma once

#include "holdfast/error.hpp"
#include "json/worktree.hpp"

#include <cstdint>
#include <optional>
#include <string>

/// `audit.jsonl`: each line has the hash of the one before. Lines are appended under the guard of the repository.
namespace holdfast::guards::worktree {

/// The newest event; absent in an empty log. A line without an end was being written when its process died, and was
/// never acknowledged: it does not count. `audit_chain_broken` if the newest line is not what was written.
[[nodiscard]] Result<std::optional<json::ReadWorktreeEvent>> last_event(int control_folder);

/// Appends, and returns when the line is on the disk.
[[nodiscard]] Result<void> append_event(int control_folder, json::WorktreeEvent event);

/// Reads the whole log: how many events it has. `audit_chain_broken` names the first line that does not fit.
[[nodiscard]] Result<std::uint64_t> verify_audit(int control_folder);

}  // namespace holdfast::guards::worktree
