#pragma once

#include "guards/worktree/copy_file.hpp"
#include "guards/worktree/snapshot_reader.hpp"
#include "holdfast/error.hpp"

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

namespace holdfast::guards::worktree {

/// Which entries of a snapshot are copied, and who hears of the progress.
struct RestoreSelection {
    std::string path{};                                   ///< This and what is beneath it; empty for everything.
    std::function<bool(const Entry& entry)> leave_out{};  ///< True of a folder: also what is beneath it. Null: nothing.
    std::stop_token stop{};
    std::function<void(std::uint64_t entries, const CopyFacts& facts)> progress{};  ///< Null: nobody.
};

struct RestoredTree {
    std::uint64_t entries = 0;
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
    std::uint64_t special = 0;    ///< Sockets and devices: they were recorded, and are not made.
    std::uint64_t reflinked = 0;  ///< Files.
};

/// Copies the selected entries of a snapshot into the empty folder `tree` in `stage`, which also gets the file
/// `manifest`: the list of what the tree is to be. Everything is on the disk when this returns.
///
/// Every byte that was read is compared with the hash that the snapshot has of it: `payload_hash_mismatch` names the
/// file, and then the tree is of no use. `lock_not_held` if the snapshot has no `selection.path`.
[[nodiscard]] Result<RestoredTree> copy_snapshot(const SnapshotReader& snapshot, int stage, int tree,
                                                 const RestoreSelection& selection);

/// Reads every object of a snapshot and compares it with its hash. How many were verified: files, and the manifest.
/// `found` hears of each that is not what was stored.
[[nodiscard]] Result<std::uint64_t> verify_snapshot(const SnapshotReader& snapshot, std::stop_token stop,
                                                    const std::function<void(const Entry&, const Error&)>& found);

/// Whether `path` is `folder` or beneath it. Everything is beneath the empty path.
[[nodiscard]] bool is_at_or_beneath(std::string_view path, std::string_view folder);

}  // namespace holdfast::guards::worktree
