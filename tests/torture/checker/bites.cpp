#include "checks.hpp"

#include <algorithm>

namespace checker {
namespace {

template <class Test>
bool any_op(const History& history, Test test) {
    return std::ranges::any_of(history.locks,
                               [&](const auto& lock) { return std::ranges::any_of(lock.second.ops, test); });
}

/// A victim that was in a call, or trusted a lease.
bool met_somebody(const History& history, const Fault& fault) {
    const bool busy = any_op(history, [&](const Op& op) {
        return op.process == fault.process && op.begun <= fault.begun && op.returned > fault.begun;
    });
    return busy || std::ranges::any_of(history.locks, [&](const auto& lock) {
               return std::ranges::any_of(lock.second.beliefs, [&](const Belief& belief) {
                   return belief.process == fault.process && belief.at <= fault.begun && belief.until > fault.begun;
               });
           });
}

/// A holder whose lease ran out while it was stopped.
bool outlasted_a_lease(const History& history, const Fault& fault) {
    return std::ranges::any_of(history.locks, [&](const auto& lock) {
        return std::ranges::any_of(lock.second.beliefs, [&](const Belief& belief) {
            return belief.process == fault.process && !belief.lost && belief.at <= fault.begun &&
                   belief.until > fault.begun && belief.until < fault.ended;
        });
    });
}

/// A supervisor whose command was at work, and was ended for it.
bool ended_a_command(const History& history, const Fault& fault) {
    return std::ranges::any_of(history.locks, [&](const auto& lock) {
        const auto& ops = lock.second.ops;
        const auto op = std::ranges::find_if(ops, [&](const Op& one) {
            return one.kind == "supervise" && one.process == fault.process && one.begun <= fault.begun &&
                   one.returned > fault.begun;
        });
        return op != ops.end() && std::ranges::any_of(lock.second.lives, [&](const auto& entry) {
                   const Life& life = entry.second;
                   return life.process == fault.process && life.begun >= op->begun && life.begun <= fault.begun &&
                          !life.ended;
               });
    });
}

/// Somebody was left without an answer, or without a store; or a command was ended because its lease ran out.
bool was_noticed(const History& history, const Fault& fault) {
    return any_op(history, [&](const Op& op) {
        const bool failed = op.why == "E_OUTCOME_UNKNOWN" || op.why == "E_STORE_UNAVAILABLE" ||
                            (op.kind == "supervise" && op.why == "E_LOCK_EXPIRED");
        return failed && op.begun <= fault.ended && op.returned >= fault.begun;
    });
}

/// A call failed, or took longer than any does that nothing holds up.
bool held_somebody_up(const History& history, const Fault& fault) {
    // A delay is seen in a request that was sent during it and answered late.
    const Nanos earliest = fault.delay > 0 ? fault.begun : 0;
    const Nanos longest = fault.delay > 0 ? 2 * fault.delay : 200'000'000;
    const bool late = any_op(history, [&](const Op& op) {
        return op.kind != "supervise" && op.begun >= earliest && op.begun <= fault.ended && op.returned != never &&
               op.returned >= fault.begun && op.returned - op.begun >= longest;
    });
    return late || (fault.delay == 0 && was_noticed(history, fault));
}

/// Somebody's lease was running, or a call was under way.
bool met_anybody(const History& history, const Fault& fault) {
    return std::ranges::any_of(history.locks,
                               [&](const auto& lock) {
                                   return std::ranges::any_of(lock.second.beliefs, [&](const Belief& belief) {
                                       return !belief.lost && belief.at <= fault.ended && belief.until >= fault.begun;
                                   });
                               }) ||
           any_op(history, [&](const Op& op) { return op.begun <= fault.ended && op.returned >= fault.begun; });
}

/// Something that was acknowledged is gone.
bool undid_something(const History& history, const Fault& fault) {
    return std::ranges::any_of(history.locks, [&](const auto& lock) {
        return std::ranges::any_of(lock.second.ops, [&](const Op& op) {
            return op.kind == "acquire" && op.ending == Ending::ok && op.begun > fault.from && op.ended < fault.begun &&
                   std::ranges::none_of(lock.second.audit, [&](const Audit& event) { return event.id == op.id; });
        });
    });
}

bool bit(const History& history, const Fault& fault) {
    if (fault.kind == "kill") return met_somebody(history, fault);
    if (fault.kind == "stop") return outlasted_a_lease(history, fault) || ended_a_command(history, fault);
    if (fault.kind.starts_with("supervisor_")) return ended_a_command(history, fault);
    if (fault.kind == "restore") return undid_something(history, fault);
    if (fault.kind == "clock") return met_anybody(history, fault);
    static const std::vector<std::string> slow{"delay", "partition_", "node_", "leader_"};
    if (std::ranges::any_of(slow, [&](const auto& kind) { return fault.kind.starts_with(kind); }))
        return held_somebody_up(history, fault);
    return was_noticed(history, fault);
}

}  // namespace

void count_bites(const History& history, Verdict& verdict) {
    for (const Fault& fault : history.faults) {
        ++verdict.injected[fault.kind];
        verdict.bitten[fault.kind] += bit(history, fault) ? 1 : 0;
    }
    // Not a fault of its own: what a stop is for.
    verdict.bitten["stale"] = verdict.counts["stale writes refused"] + verdict.counts["stale writes accepted"];
    for (const std::string& kind : history.required)
        if (verdict.bitten[kind] == 0) verdict.missing.push_back(kind);
    if (!history.control) return;
    // Without a fence the register must suffer; a run in which it does not shows nothing.
    if (verdict.counts["lost updates"] == 0) verdict.missing.emplace_back("lost updates without the fence");
    std::erase_if(verdict.violations, [](const Violation& violation) {
        return violation.check == "C5" || violation.check == "C6" ||
               violation.what.find("by force") != std::string::npos;
    });
}

Verdict judge(const History& history, std::set<std::string> left_out) {
    Verdict verdict;
    verdict.left_out = std::move(left_out);
    for (const auto& [name, lock] : history.locks) {
        check_tokens(lock, verdict);
        check_beliefs(history, lock, verdict);
        check_audit(history, lock, verdict);
        check_register(lock, verdict);
        check_liveness(history, lock, verdict);
        check_breaks(lock, verdict);
        check_lives(history, lock, verdict);
        for (const Op& op : lock.ops) {
            ++verdict.counts["calls"];
            verdict.counts["calls with unknown outcome"] += op.ending == Ending::unknown ? 1 : 0;
        }
    }
    verdict.counts["locks"] = history.locks.size();
    count_bites(history, verdict);
    return verdict;
}

}  // namespace checker
