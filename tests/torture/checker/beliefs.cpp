#include "checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace checker {
namespace {

/// Taken from its holder by an operator, with the knowledge that the holder may still believe.
bool was_broken(const LockHistory& lock, const std::string& id, Nanos before) {
    return std::ranges::any_of(lock.ops, [&](const Op& op) {
        return op.kind == "break" && op.id == id && op.ending != Ending::refused && op.begun < before;
    });
}

double ms(Nanos time) { return static_cast<double>(time) / 1e6; }

}  // namespace

std::vector<Trust> trusts_of(const History& history, const LockHistory& lock) {
    std::map<std::string, Trust> by_id;
    for (const Belief& belief : lock.beliefs) {
        if (belief.lost) continue;
        Trust& trust = by_id[belief.id];
        if (belief.at < trust.start) trust.line = belief.line;
        trust.id = belief.id;
        trust.process = belief.process;
        trust.token = belief.token;
        trust.start = std::min(trust.start, belief.at);
        trust.end = std::max(trust.end, belief.until);
    }
    const auto end_at = [&](const std::string& id, Nanos moment) {
        const auto found = by_id.find(id);
        if (found != by_id.end()) found->second.end = std::min(found->second.end, moment);
    };
    for (const Belief& belief : lock.beliefs)
        if (belief.lost) end_at(belief.id, belief.at);
    for (const Op& op : lock.ops) {
        // A holder that releases the lock stops believing before it sends the request.
        if (op.kind == "release" || op.kind == "transfer") end_at(op.id, op.begun);
        const std::string& id = op.kind == "transfer" ? op.to : op.id;
        const auto found = by_id.find(id);
        if (found != by_id.end() && (op.kind == "acquire" || op.kind == "transfer"))
            found->second.asked = std::min(found->second.asked, op.begun);
    }
    // The dead believe nothing.
    for (const Fault& fault : history.faults)
        for (auto& [id, trust] : by_id)
            if ((fault.kind == "kill" && fault.process == trust.process) ||
                (fault.kind == "restore" && trust.start <= fault.ended))
                trust.end = std::min(trust.end, fault.ended);
    std::vector<Trust> trusts;
    for (const auto& [id, trust] : by_id)
        if (trust.start < trust.end) trusts.push_back(trust);
    std::ranges::sort(trusts, {}, &Trust::start);
    return trusts;
}

void check_beliefs(const History& history, const LockHistory& lock, Verdict& verdict) {
    const Trust* widest = nullptr;
    const std::vector<Trust> trusts = trusts_of(history, lock);
    for (const Trust& trust : trusts) {
        if (widest != nullptr && trust.start < widest->end && trust.token != widest->token) {
            const double overlap = ms(std::min(trust.end, widest->end) - trust.start);
            if (was_broken(lock, widest->id, trust.start)) {
                ++verdict.counts["overlaps after a break"];
            } else if (clock_moved_between(history, std::min({widest->asked, widest->start, trust.asked}),
                                           trust.start)) {
                ++verdict.counts["overlaps after the store's clock was moved"];
            } else {
                verdict.flag("C3",
                             fmt::format("{}: holders of tokens {} and {} believed for {:.1f} ms at the same time",
                                         lock.name, widest->token, trust.token, overlap),
                             widest->line, trust.line);
            }
        }
        // How long a waiter had to wait for a holder that was gone.
        if (widest != nullptr && trust.start >= widest->end && trust.asked < trust.start)
            verdict.times["from the holder's last moment to the next grant"].push_back(
                ms(trust.start - std::max(widest->end, std::min(trust.asked, trust.start))));
        if (widest == nullptr || trust.end > widest->end) widest = &trust;
    }
    verdict.counts["leases believed in"] += trusts.size();
}

}  // namespace checker
