#pragma once

#include "guards/worktree/copy_file.hpp"
#include "guards/worktree/exclusions.hpp"
#include "guards/worktree/in_order.hpp"
#include "guards/worktree/manifest.hpp"
#include "guards/worktree/proof.hpp"
#include "holdfast/error.hpp"
#include "json/worktree.hpp"

#include <functional>
#include <optional>
#include <stop_token>

namespace holdfast::guards::worktree {

/// The snapshot whose files are linked instead of copied where they did not change.
struct BaseSnapshot {
    base::Fd payload{};
    base::Fd folder{};  ///< With the manifest.
};

struct LiveCopyJob {
    int worktree = -1;
    int payload = -1;  ///< The empty folder that it goes into.
    int manifest_folder = -1;
    const Exclusions* exclusions = nullptr;
    const BaseSnapshot* base = nullptr;  ///< Null: everything is copied.
    json::Consistency consistency = json::Consistency::quiesced;
    QuietSince since{};
    CopyFacts* facts = nullptr;
    std::stop_token stop{};
    std::function<void(const Entry&)> tick{};  ///< Called for each entry, in order.
};

struct LiveCopy {
    ManifestTotals totals{};
    std::uint64_t excluded = 0;
    std::uint64_t unread = 0;  ///< Files whose metadata proved that they were as in the base.
};

/// Copies a live tree and writes its manifest. `consistency_unavailable` for a quiesced copy as soon as anything is
/// seen to change; `payload_hash_mismatch` if a copy has other bytes than its source had.
///
/// Folders still lack their metadata, and files their further names: see `finish_tree`.
[[nodiscard]] Result<LiveCopy> copy_live(const LiveCopyJob& job);

}  // namespace holdfast::guards::worktree
