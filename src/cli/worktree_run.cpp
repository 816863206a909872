// `holdfast worktree run`: the lock of a worktree, for a command that writes into it, held as `holdfast run` holds any
// lock.
#include "cli/command.hpp"
#include "cli/run_locks.hpp"
#include "cli/worktree.hpp"
#include "guards/worktree/seal.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace holdfast::cli {
namespace {

Result<int> run(Context& context) {
    if (context.line.tail.empty())
        return fail(Errc::usage, "worktree run needs a command after --: holdfast worktree run -- CMD ARG...");
    const auto repository = repository_of(context);
    if (!repository) return std::unexpected(repository.error());
    const auto row = worktree_of(context, *repository);
    if (!row) return std::unexpected(row.error());
    if (row->is_shared)
        return fail(Errc::usage, fmt::format("{} is shared, a high risk: it has no lock that could be held; run the "
                                             "command without holdfast",
                                             printable(row->worktree_id)));
    if (context.line.given.contains(opt::store.name))
        return fail(Errc::usage, "the locks of worktrees are in their repository; --store has no meaning here");
    Plan plan;
    plan.holder = context.holder();
    plan.operation = context.settings.given(opt::operation) ? context.settings.text(opt::operation)
                                                            : end_of(printable(context.line.tail.front()), 255);
    plan.names.push_back(trees::lock_of(row->worktree_id));
    auto meta = context.settings.meta();
    if (!meta) return std::unexpected(meta.error());
    plan.meta = *std::move(meta);
    auto terms = context.settings.terms_for(plan.names.front());
    if (!terms) return std::unexpected(terms.error());
    const auto grace = grace_for(context, std::min(terms->ttl.time(), terms->max_hold.value_or(Ttl::longest)));
    if (!grace) return std::unexpected(grace.error());
    plan.grace = *grace;
    plan.terms.push_back(*std::move(terms));
    plan.store_url = repository->store_url();
    plan.before_command = [&](const std::vector<HeldLease>& leases, Store& store) -> Result<void> {
        const InheritedLease& lease = leases.front().lease;
        if (!lease.token) return fail(Errc::usage, "the lease of the worktree has no token");
        const trees::Claim claim{*lease.token, lease.as.lock_id, plan.holder.text};
        return trees::seal(*repository, row->worktree_id, claim, store, context.soon());
    };
    return run_planned(context, plan);
}

constexpr std::array options{opt::worktree,  opt::ttl,    opt::wait,    opt::no_wait,     opt::max_hold,
                             opt::grace,     opt::reason, opt::holder,  opt::user,        opt::session,
                             opt::operation, opt::meta,   opt::if_held, opt::leave_behind};

}  // namespace

constinit const Command worktree_run_command{
    "worktree run",
    "",
    "Run a command that writes into a worktree, under its lock",
    "As holdfast run, with the lock of the worktree in the repository: everything that writes into a worktree belongs "
    "under it. Former holders are shut out before CMD begins. A worktree snapshot or restore inside joins the "
    "lease.\n\nExample: holdfast worktree run -- ./import.sh",
    {},
    options,
    run,
    Tail::command};

}  // namespace holdfast::cli
