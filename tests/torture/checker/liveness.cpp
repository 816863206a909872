#include "checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>

namespace checker {
namespace {

const std::string conflict = "E_LOCK_CONFLICT";

/// Somebody in the queue: its calls, in their order.
struct Waiter {
    std::vector<const Op*> calls{};

    /// Since when its ticket was surely there.
    [[nodiscard]] Nanos queued_at() const { return calls.front()->ended; }
};

std::vector<Waiter> waiters_of(const LockHistory& lock) {
    std::map<std::string, Waiter> by_id;
    for (const Op& op : lock.ops) {
        if ((op.kind != "acquire" || op.ticket == 0) && op.kind != "handed") continue;
        Waiter& waiter = by_id[op.id];
        // Only a refusal shows that the ticket is there; what ended otherwise proves nothing.
        const bool in_line = op.ending == Ending::refused && op.why == conflict;
        const bool at_last = !waiter.calls.empty() && op.ending == Ending::ok;
        if (in_line || at_last) waiter.calls.push_back(&op);
    }
    std::vector<Waiter> waiters;
    for (auto& [id, waiter] : by_id)
        if (!waiter.calls.empty()) waiters.push_back(std::move(waiter));
    std::ranges::sort(waiters, {}, &Waiter::queued_at);
    return waiters;
}

/// The call by which `waiter` shows that it was still in line when `moment` was over: its ticket can never have run
/// out until then. Null: it may have left.
const Op* still_waiting_after(const Waiter& waiter, Nanos moment) {
    const Op* previous = nullptr;
    for (const Op* call : waiter.calls) {
        if (previous != nullptr && call->ended - previous->begun >= previous->ticket) return nullptr;
        if (call->begun > moment) return call;
        previous = call;
    }
    return nullptr;
}

void check_queue(const History& history, const LockHistory& lock, Verdict& verdict) {
    const std::vector<Waiter> waiters = waiters_of(lock);
    verdict.counts["waits in the queue"] += waiters.size();
    std::list<const Waiter*> in_line;
    std::size_t next = 0;
    std::vector<Grant> grants = grants_of(lock);
    std::ranges::sort(grants, {}, &Grant::begun);
    std::map<std::string, Nanos> first_asked;
    for (const Op& op : lock.ops)
        if (op.kind == "acquire") first_asked.try_emplace(op.id, op.begun);
    for (const Grant& grant : grants) {
        if (grant.op->kind == "transfer") continue;
        while (next < waiters.size() && waiters[next].queued_at() < grant.begun) in_line.push_back(&waiters[next++]);
        std::erase_if(in_line, [&](const Waiter* waiter) { return waiter->calls.back()->begun < grant.begun; });
        for (const Waiter* waiter : in_line) {
            if (waiter->calls.front()->id == grant.id || waiter->queued_at() >= first_asked[grant.id]) continue;
            const Op* shown = still_waiting_after(*waiter, grant.ended);
            if (shown == nullptr || clock_moved_between(history, waiter->calls.front()->begun, grant.ended)) continue;
            verdict.flag("C7", fmt::format("{}: {} was overtaken by token {}", lock.name, shown->process, grant.token),
                         waiter->calls.front()->end_line, grant.op->end_line);
        }
    }
}

}  // namespace

void check_liveness(const History& history, const LockHistory& lock, Verdict& verdict) {
    check_queue(history, lock, verdict);
    for (const Op& op : lock.ops) {
        if (op.kind != "turn" || !history.healed || op.begun < *history.healed) continue;
        ++verdict.counts["turns after the faults"];
        if (op.ending == Ending::ok) {
            verdict.times["turn after the faults"].push_back(static_cast<double>(op.ended - op.begun) / 1e6);
            continue;
        }
        verdict.flag("C7",
                     fmt::format("{}: {} never got its turn after the faults: {}", lock.name, op.process,
                                 op.why.empty() ? "no answer" : op.why),
                     op.line, op.end_line == 0 ? op.line : op.end_line);
    }
}

}  // namespace checker
