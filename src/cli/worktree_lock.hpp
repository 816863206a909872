#pragma once

#include "cli/worktree.hpp"
#include "guards/worktree/seal.hpp"

#include <functional>
#include <stop_token>

namespace holdfast::cli {

/// What work on a worktree runs under.
struct WorktreeLease {
    trees::Claim claim;
    Store& store;
    std::stop_token stop;  ///< The lease is lost, or a signal came: nothing more may be changed.
};

/// Does `work` while this process holds the lock of the worktree, which is sealed for it first: joins the lease of a
/// `worktree run` around it, or takes one and gives it back. The lease is renewed throughout, and a renewal that fails
/// stops the work.
[[nodiscard]] Result<int> under_worktree_lock(Context& context, const trees::Repository& repository,
                                              const trees::WorktreeRow& row,
                                              const std::function<Result<int>(const WorktreeLease&)>& work);

/// The same for a shared worktree: no lease, only signals.
[[nodiscard]] Result<int> without_worktree_lock(const std::function<Result<int>(std::stop_token)>& work);

}  // namespace holdfast::cli
