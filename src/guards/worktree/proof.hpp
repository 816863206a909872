#pragma once

#include "guards/worktree/copy_file.hpp"
#include "guards/worktree/exclusions.hpp"
#include "guards/worktree/walker.hpp"
#include "holdfast/error.hpp"

#include <functional>
#include <stop_token>
#include <string>

/// The proof that a tree did not move while it was copied: everything was unchanged from when it was read until it was
/// looked at again, so at the moment between the two passes all of it was as the copy has it.
namespace holdfast::guards::worktree {

/// From when on a change shows.
struct QuietSince {
    Moment from{};  ///< Whatever changes from now on has a ctime that is not before this.
    /// Stamps are made with the clock of this kernel, so they can be compared with `from`.
    bool stamps_are_ours = false;
    /// The ctime tells of every change, also of one through mmap. On other file systems contents are read twice.
    bool ctime_is_trusted = false;
};

/// Waits until the file system's time has moved on, and makes what is written in memory reach the files: from then on a
/// write through a mapping of a file changes its ctime, too.
[[nodiscard]] Result<QuietSince> settle(int worktree);

/// Whether the ctime says that the thing changed after `since`. One from the future says nothing: its clock was wrong.
[[nodiscard]] bool has_moved(const Moment& ctime, const QuietSince& since);
/// Whether a ctime cannot tell of a change: the file's clock, or its file system, is not to be trusted.
[[nodiscard]] bool is_racy(const Moment& ctime, const QuietSince& since);

struct ProofJob {
    int worktree = -1;
    const Exclusions* exclusions = nullptr;
    int manifest_folder = -1;
    std::string manifest{};  ///< Of what was copied.
    QuietSince since{};
    CopyFacts* facts = nullptr;
    std::stop_token stop{};
    std::function<void()> tick{};  ///< Called for each entry.
};
/// `consistency_unavailable`, with the first paths that changed, if anything did.
[[nodiscard]] Result<void> prove_quiet(const ProofJob& job);

}  // namespace holdfast::guards::worktree
