#pragma once

#include "base/fd.hpp"
#include "guards/worktree/manifest.hpp"
#include "guards/worktree/repository.hpp"
#include "holdfast/error.hpp"
#include "json/worktree.hpp"

#include <optional>
#include <string>

namespace holdfast::guards::worktree {

/// A finished snapshot that is being read: `prune` leaves it alone as long as this lives, and the kernel ends that with
/// the process.
class SnapshotReader {
public:
    /// `lock_not_held` if it was pruned meanwhile.
    [[nodiscard]] static Result<SnapshotReader> open(const Repository& repository, json::SnapshotDescriptor descriptor);

    [[nodiscard]] const json::SnapshotDescriptor& descriptor() const { return descriptor_; }
    [[nodiscard]] int folder() const { return folder_.get(); }
    [[nodiscard]] int payload() const { return payload_.get(); }
    [[nodiscard]] Result<ManifestReader> manifest() const;
    /// `payload_hash_mismatch` unless `manifest`, which was read to its end, is that of the descriptor.
    [[nodiscard]] Result<void> check(const ManifestReader& manifest) const;

private:
    SnapshotReader(json::SnapshotDescriptor descriptor, base::Fd folder, base::Fd payload)
        : descriptor_(std::move(descriptor)), folder_(std::move(folder)), payload_(std::move(payload)) {}

    json::SnapshotDescriptor descriptor_;
    base::Fd folder_;  ///< Locked for shared use.
    base::Fd payload_;
};

/// The folder `name` in `parent`, locked for this process alone; absent if another process uses it. The lock ends with
/// the descriptor.
[[nodiscard]] Result<std::optional<base::Fd>> open_if_unused(int parent, const std::string& name,
                                                             std::string_view shown);

}  // namespace holdfast::guards::worktree
