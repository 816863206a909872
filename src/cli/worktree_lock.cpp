#include "cli/worktree_lock.hpp"

#include "cli/run_locks.hpp"
#include "cli/signals.hpp"
#include "cli/waiting_notice.hpp"

#include <algorithm>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

Result<Plan> plan_of(const Context& context, const LockName& name) {
    Plan plan;
    plan.holder = context.holder();
    plan.operation = context.settings.given(opt::operation) ? context.settings.text(opt::operation)
                                                            : std::string(context.line.command->name);
    plan.names.push_back(name);
    auto terms = context.settings.terms_for(name);
    if (!terms) return std::unexpected(terms.error());
    plan.grace = std::min(milliseconds{5000}, terms->ttl.time() / 3);
    plan.terms.push_back(std::move(*terms));
    return plan;
}

/// What ended the work, where that was not the work itself.
Result<int> ending(const StopOnSignal& signals, const HoldGroup& group, Result<int> done) {
    if (done || done.error().code == Errc::fencing_mismatch) return done;
    if (signals.token().stop_requested()) return signals.exit_status();
    if (auto loss = group.loss()) return std::unexpected(*loss);
    return done;
}

}  // namespace

Result<int> under_worktree_lock(Context& context, const trees::Repository& repository, const trees::WorktreeRow& row,
                                const std::function<Result<int>(const WorktreeLease&)>& work) {
    const LockName name = trees::lock_of(row.worktree_id);
    const auto plan = plan_of(context, name);
    if (!plan) return std::unexpected(plan.error());
    const auto inherited = inherited_leases();
    if (!inherited) return std::unexpected(inherited.error());
    const StopOnSignal signals;
    const auto store = lock_store_of(context, repository);
    if (!store) return std::unexpected(store.error());
    auto joined = join_outer(context, *plan, {*store}, *inherited);
    if (!joined) return std::unexpected(joined.error());
    WaitingNotice notice(context.out, context.clock);
    const auto blocked = [&](const Error& conflict, Store& where, const LockName& asked) {
        if (plan->terms.front().wait > milliseconds{0}) notice.show(conflict, where, asked);
    };
    auto group = take(context, *plan, {*store}, *std::move(joined), {signals.token(), blocked});
    if (!group) {
        if (signals.token().stop_requested()) return signals.exit_status();
        return std::unexpected(group.error());
    }
    if (auto renewed = group->start_renewing(); !renewed) return std::unexpected(renewed.error());
    const Hold& hold = group->holds().front();
    std::stop_source stop;
    const std::stop_callback on_loss(hold.lost(), [&stop] { stop.request_stop(); });
    const std::stop_callback on_signal(signals.token(), [&stop] { stop.request_stop(); });
    const trees::Claim claim = trees::claim_of(hold, plan->holder);
    const auto sealed = trees::seal(repository, row.worktree_id, claim, **store, context.soon());
    auto done =
        ending(signals, *group, sealed ? work({claim, **store, stop.get_token()}) : std::unexpected(sealed.error()));
    const auto released = group->release();
    // What was done is done. A lease that is not given back runs out by itself.
    if (!released && done) context.out.note("holdfast: the lease was not given back: " + released.error().message);
    return done;
}

Result<int> without_worktree_lock(const std::function<Result<int>(std::stop_token)>& work) {
    const StopOnSignal signals;
    auto done = work(signals.token());
    if (!done && signals.token().stop_requested()) return signals.exit_status();
    return done;
}

}  // namespace holdfast::cli
