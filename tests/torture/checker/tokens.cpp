#include "checks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace checker {
namespace {

bool is_grant(const Audit& event) {
    return event.kind == "acquired" || event.kind == "stolen" || event.kind == "transferred" ||
           event.kind == "override_approved";
}

/// The grant with the highest token that had been acknowledged at a moment.
class Acknowledged {
public:
    explicit Acknowledged(std::vector<Grant> grants) : by_end_(std::move(grants)) {
        std::ranges::sort(by_end_, {}, &Grant::ended);
        for (std::size_t i = 1; i < by_end_.size(); ++i)
            if (by_end_[i].token < by_end_[i - 1].token) {
                // From this moment on, too, the highest so far is the one that counts.
                const Nanos ended = by_end_[i].ended;
                by_end_[i] = by_end_[i - 1];
                by_end_[i].ended = ended;
            }
    }
    [[nodiscard]] const Grant* before(Nanos moment) const {
        const auto after = std::ranges::lower_bound(by_end_, moment, {}, &Grant::ended);
        return after == by_end_.begin() ? nullptr : &*std::prev(after);
    }

private:
    std::vector<Grant> by_end_;
};

void check_unique(const LockHistory& lock, const std::vector<Grant>& grants, Verdict& verdict) {
    std::map<Token, std::pair<std::string, std::size_t>> owner;
    const auto own = [&](Token token, const std::string& id, std::size_t line) {
        const auto [entry, fresh] = owner.try_emplace(token, id, line);
        if (!fresh && entry->second.first != id)
            verdict.flag("C1",
                         fmt::format("{}: token {} belongs to {} and to {}", lock.name, token, entry->second.first, id),
                         entry->second.second, line);
    };
    for (const Grant& grant : grants) own(grant.token, grant.id, grant.op->end_line);
    for (const auto& [id, life] : lock.lives) own(life.token, id, life.line);
    for (const Audit& event : lock.audit)
        if (is_grant(event)) own(event.token, event.id, event.line);
    verdict.counts["tokens"] += owner.size();
}

void check_monotone(const LockHistory& lock, const std::vector<Grant>& grants, const Acknowledged& acknowledged,
                    Verdict& verdict) {
    for (const Grant& grant : grants) {
        const Grant* earlier = acknowledged.before(grant.begun);
        if (earlier != nullptr && earlier->token > grant.token)
            verdict.flag(
                "C2", fmt::format("{}: token {} was granted after {} had been", lock.name, grant.token, earlier->token),
                earlier->op->end_line, grant.op->end_line);
    }
    const Audit* last = nullptr;
    for (const Audit& event : lock.audit) {
        const bool spends = is_grant(event) || event.kind == "broken";
        // Two grants with the same token are a matter of C1.
        const bool twice = last != nullptr && is_grant(event) && is_grant(*last) && event.token == last->token;
        if (last != nullptr && !twice && (spends ? event.token <= last->token : event.token < last->token))
            verdict.flag(
                "C2", fmt::format("{}: event {} has token {} after {}", lock.name, event.seq, event.token, last->token),
                last->line, event.line);
        last = &event;
    }
}

/// Calls that prolong a lease which their caller has been granted before.
bool prolongs(const Op& op, const std::map<std::string, const Op*>& first) {
    if (op.ending != Ending::ok) return false;
    if (op.kind == "renew") return true;
    const auto found = first.find(op.id);
    return op.kind == "acquire" && found != first.end() && found->second->ended < op.begun;
}

void check_renewals(const LockHistory& lock, const std::vector<Grant>& grants, const Acknowledged& acknowledged,
                    Verdict& verdict) {
    std::map<std::string, const Op*> first;
    std::map<std::string, const Op*> last;
    for (const Grant& grant : grants) {
        first.emplace(grant.id, grant.op);
        last.emplace(grant.id, grant.op);
    }
    for (const Op& op : lock.ops) {
        if (!prolongs(op, first)) continue;
        ++verdict.counts["renewals"];
        const Token token = op.granted == 0 ? op.token : op.granted;
        const Grant* newer = acknowledged.before(op.begun);
        if (newer != nullptr && newer->token > token)
            verdict.flag(
                "C8", fmt::format("{}: token {} was renewed after {} had been granted", lock.name, token, newer->token),
                newer->op->end_line, op.end_line);
        const Op*& previous = last[op.id];
        if (previous != nullptr && previous->ended < op.begun && previous->renewals >= op.renewals)
            verdict.flag("C8",
                         fmt::format("{}: renewal {} of token {} came after {}", lock.name, op.renewals, token,
                                     previous->renewals),
                         previous->end_line, op.end_line);
        previous = &op;
    }
}

}  // namespace

std::vector<Grant> grants_of(const LockHistory& lock) {
    std::vector<Grant> grants;
    std::map<std::string, Nanos> asked;  // Since when it can have been granted.
    std::map<std::string, bool> granted;
    for (const Op& op : lock.ops) {
        if (op.kind != "acquire" && op.kind != "transfer" && op.kind != "handed") continue;
        const std::string& id = op.kind == "transfer" ? op.to : op.id;
        if (granted[id]) continue;
        // A refusal says that nothing was granted until then, but a queued waiter may be handed the lock from then on;
        // an unknown answer says nothing.
        if (op.ending == Ending::refused) {
            asked.erase(id);
            if (op.ticket > 0) asked.emplace(id, op.begun);
            continue;
        }
        const Nanos since = asked.try_emplace(id, op.begun).first->second;
        if (op.ending != Ending::ok) continue;
        granted[id] = true;
        grants.push_back({id, op.granted, since, op.ended, &op});
    }
    return grants;
}

bool clock_moved_between(const History& history, Nanos first, Nanos second) {
    return std::ranges::any_of(history.faults, [&](const Fault& fault) {
        return fault.kind == "clock" && fault.ended >= first && fault.begun <= second;
    });
}

void check_tokens(const LockHistory& lock, Verdict& verdict) {
    const std::vector<Grant> grants = grants_of(lock);
    verdict.counts["grants"] += grants.size();
    const Acknowledged acknowledged(grants);
    check_unique(lock, grants, verdict);
    check_monotone(lock, grants, acknowledged, verdict);
    check_renewals(lock, grants, acknowledged, verdict);
}

}  // namespace checker
