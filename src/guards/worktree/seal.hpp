#pragma once

#include "guards/worktree/repository.hpp"
#include "holdfast/error.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/store.hpp"

#include <string>

/// The fence of a worktree. A new holder seals it before it reads anything; only the holder that sealed it last may
/// publish. Both happen under the guard of the repository, so a check and what follows it are one step, and a
/// holder that was stopped beyond its lease comes too late.
namespace holdfast::guards::worktree {

/// A lease on `worktree/<id>`. Public, proves nothing.
struct Claim {
    FencingToken token{};
    LockId lock_id{};
    std::string holder_id{};
};
[[nodiscard]] Claim claim_of(const Hold& hold, const Holder& holder);

/// Lets nobody but `claim` publish from now on. Repeating it is harmless. `fencing_mismatch` if a newer holder was
/// here; `token_regressed` if the worktree has seen a newer token than the store, which says that `claim` is current.
[[nodiscard]] Result<void> seal(const Repository& repository, const std::string& worktree_id, const Claim& claim,
                                Store& store, Deadline deadline);

/// Whether `claim` is the one that sealed last, and its lease is the current one of `store`. Under the guard.
/// `fencing_mismatch` if a newer holder was here; then the lock's audit log has the event `fenced`.
[[nodiscard]] Result<void> expect_current(const Guard& guard, const Repository& repository, const WorktreeRow& row,
                                          const Claim& claim, Store& store, Deadline deadline);

/// Whether somebody else has sealed the worktree since `claim` did: the reason to tell for a lease that was lost.
[[nodiscard]] bool was_overtaken(const Repository& repository, const std::string& worktree_id, const Claim& claim);

}  // namespace holdfast::guards::worktree
