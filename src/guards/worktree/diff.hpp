#pragma once

#include "guards/worktree/entry.hpp"
#include "guards/worktree/snapshot_reader.hpp"
#include "guards/worktree/walker.hpp"
#include "holdfast/error.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

/// What tells one tree from another: snapshots, and the live tree of a worktree.
namespace holdfast::guards::worktree {

/// One tree after another entry, in the order of manifests.
class EntrySource {
public:
    EntrySource() = default;
    EntrySource(const EntrySource&) = delete;
    EntrySource& operator=(const EntrySource&) = delete;
    virtual ~EntrySource() = default;
    /// Absent at the end.
    [[nodiscard]] virtual Result<std::optional<Entry>> next() = 0;
    /// Fills in the hash of the file that `next` gave last. `known` is what the other tree has at this path: a file
    /// that nobody has touched since then is not read again.
    [[nodiscard]] virtual Result<void> hash(Entry& entry, const Entry& known) = 0;
};

/// `snapshot` must outlive it.
[[nodiscard]] Result<std::unique_ptr<EntrySource>> entries_of(const SnapshotReader& snapshot);
/// Of the tree that `root` is open on. `root` and what `options` point to must outlive it.
[[nodiscard]] std::unique_ptr<EntrySource> entries_of(int root, WalkOptions options);

enum class Change {
    added,
    deleted,
    content,   ///< Of a file, or the target of a link.
    metadata,  ///< Mode, owner, time or attributes alone.
    type,      ///< Something else of the same name.
};
[[nodiscard]] std::string_view name_of(Change change);

struct Difference {
    Change change = Change::added;
    Entry entry{};  ///< As it is in the newer tree; as it was, if it was deleted.
};

/// Calls `each` for every path that is not the same in both, in the order of manifests. The times of folders do not
/// count: every new name in one changes them.
[[nodiscard]] Result<void> compare(EntrySource& older, EntrySource& newer,
                                   const std::function<Result<void>(const Difference&)>& each);

}  // namespace holdfast::guards::worktree
