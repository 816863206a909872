#include "guards/worktree/seal.hpp"

#include "guards/worktree/restore.hpp"

#include <fmt/format.h>

namespace holdfast::guards::worktree {
namespace {

bool is_seal_of(const WorktreeRow& row, const Claim& claim) {
    return row.seal && row.seal->token == claim.token.value && row.seal->lock_id == claim.lock_id.text();
}

Error overtaken(const WorktreeRow& row, const Claim& claim) {
    return {Errc::fencing_mismatch,
            fmt::format("the worktree {} is sealed for token {}, and yours is {}: nothing was published",
                        row.worktree_id, row.seal ? row.seal->token : 0, claim.token.value)};
}

/// The lock's own audit log hears of a write that was refused. What cannot be told there changes nothing.
void report(Store& store, const WorktreeRow& row, const Claim& claim, const Error& why, Deadline deadline) {
    ReportFenced event{.name = lock_of(row.worktree_id), .token = claim.token, .lock_id = claim.lock_id};
    event.holder.text = claim.holder_id;
    event.resource = "worktree " + row.worktree_id;
    event.reason = why.message;
    static_cast<void>(store.apply_one(event, deadline));
}

}  // namespace

Claim claim_of(const Hold& hold, const Holder& holder) {
    return {hold.token(), hold.credentials().lock_id, holder.text};
}

Result<void> seal(const Repository& repository, const std::string& worktree_id, const Claim& claim, Store& store,
                  Deadline deadline) {
    const auto guard = repository.guard(deadline);
    if (!guard) return std::unexpected(guard.error());
    // A new holder never sees a tree whose exchange was begun and not finished.
    if (auto recovered = recover_restores(repository, *guard); !recovered) return std::unexpected(recovered.error());
    auto registry = repository.registry();
    if (!registry) return std::unexpected(registry.error());
    WorktreeRow* row = find_row(*registry, worktree_id);
    if (row == nullptr) return fail(Errc::usage, "the worktree " + worktree_id + " is not registered any more");
    const Check check{.name = lock_of(worktree_id), .token = claim.token, .lock_id = claim.lock_id};
    if (const auto current = store.apply_one(check, deadline); !current) return std::unexpected(current.error());
    if (is_seal_of(*row, claim)) return {};
    if (row->seal && row->seal->token >= claim.token.value)
        return fail(Errc::token_regressed,
                    fmt::format("the worktree {} has seen token {}, and its lock gave out {}: the locks were restored "
                                "from an older copy, or the worktree from a newer one",
                                worktree_id, row->seal->token, claim.token.value));
    row->seal = json::WorktreeSeal{claim.token.value, claim.lock_id.text()};
    return repository.write_registry(*guard, *registry);
}

Result<void> expect_current(const Guard&, const Repository&, const WorktreeRow& row, const Claim& claim, Store& store,
                            Deadline deadline) {
    if (!is_seal_of(row, claim)) {
        const Error error = overtaken(row, claim);
        report(store, row, claim, error, deadline);
        return std::unexpected(error);
    }
    // Nobody has sealed it since, and nobody can before the guard is given back. So a holder that is granted the lock
    // after this check has seen nothing yet, and comes after what is published now.
    const Check check{.name = lock_of(row.worktree_id), .token = claim.token, .lock_id = claim.lock_id};
    const auto current = store.apply_one(check, deadline);
    if (current) return {};
    if (current.error().code != Errc::lock_not_held) return std::unexpected(current.error());
    return fail(Errc::fencing_mismatch, "the lease is over: " + current.error().message);
}

bool was_overtaken(const Repository& repository, const std::string& worktree_id, const Claim& claim) {
    const auto registry = repository.registry();
    if (!registry) return false;
    const WorktreeRow* row = find_row(*registry, worktree_id);
    return row != nullptr && row->seal && !is_seal_of(*row, claim);
}

}  // namespace holdfast::guards::worktree
