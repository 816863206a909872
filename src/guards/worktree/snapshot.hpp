#pragma once

#include "guards/worktree/freeze.hpp"
#include "guards/worktree/repository.hpp"
#include "guards/worktree/seal.hpp"
#include "holdfast/error.hpp"
#include "json/worktree.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace holdfast::guards::worktree {

/// How far a snapshot has come.
struct Progress {
    std::string_view step{};  ///< `copy`, `prove`, `publish`
    std::uint64_t entries = 0;
    std::uint64_t bytes_read = 0;
    std::uint64_t entries_before = 0;  ///< Of the snapshot before; 0 if there is none.
};

struct SnapshotOptions {
    std::string message{};
    json::Consistency consistency = json::Consistency::quiesced;
    /// The lease that it is taken under. Absent in a shared worktree.
    std::optional<Claim> claim{};
    std::string actor{};     ///< Who does it.
    Store* store = nullptr;  ///< Of the lease. Not null with a claim.
    std::stop_token stop{};  ///< The lease is lost, or the caller gives up.
    std::optional<Freeze::Options> freeze{};
    std::function<void(const Progress&)> progress{};
    std::chrono::milliseconds patience{10'000};  ///< For a call to the store, and for the guard.
};

struct Snapshot {
    json::SnapshotDescriptor descriptor{};
    std::uint64_t unread = 0;  ///< Files that were not read, because their metadata proved that they had not changed.
};

/// Takes a snapshot of a worktree, in this order: intent; copy into a temporary place, with every byte compared; the
/// proof that nothing moved; under the guard the token and the lock_id, the descriptor, `.READY`, one rename; the head,
/// if it is still the one that was there at the beginning; the audit log.
///
/// After an error nothing of the snapshot is visible. After `outcome_unknown` it may be: the history of the worktree
/// shows whether it is there.
[[nodiscard]] Result<Snapshot> take_snapshot(const Repository& repository, const std::string& worktree_id,
                                             const SnapshotOptions& options);

/// Finishes what a process left that died after it had published: the head and the audit log. Removes nothing.
[[nodiscard]] Result<void> roll_forward(const Guard& guard, const Repository& repository);

}  // namespace holdfast::guards::worktree
