// What must hold after every step, told from outside: by comparing what was kept before and after with
// the request and the reply, and never by deciding a request a second time.

#include "kernel/codec.hpp"
#include "kernel/history.hpp"

#include <algorithm>

namespace holdfast::tests {
namespace {

using kernel::Decision;
using kernel::HeldLease;
using kernel::Record;
using kernel::Ticket;
using Shelf = LittleStore::Shelf;

/// What was kept before the step. Not the whole log: copying that would make a history quadratic.
struct Before {
    Record record;
    std::vector<Ticket> tickets;
};

/// One step, seen from outside.
struct Observation {
    const Request& request;
    const Decision& decision;
    const Before& before;
    const Shelf& after;
    const std::vector<Record>& others;  ///< Of `unless_held`.
    LockStatus status;                  ///< After the step.
    Instant now;

    [[nodiscard]] bool granted() const { return decision.reply.has_value(); }
    [[nodiscard]] bool live(const Record& record) const { return record.held && record.held->lease.expires_at > now; }
    template <class R>
    [[nodiscard]] const R* as() const {
        return std::get_if<R>(&request);
    }
};

const Credentials* credentials_of(const Request& request) {
    if (const auto* r = std::get_if<Acquire>(&request)) return &r->as;
    if (const auto* r = std::get_if<Renew>(&request)) return &r->as;
    if (const auto* r = std::get_if<Release>(&request)) return &r->as;
    if (const auto* r = std::get_if<Cancel>(&request)) return &r->as;
    if (const auto* r = std::get_if<Transfer>(&request)) return &r->as;
    if (const auto* r = std::get_if<Answer>(&request)) return r->by ? &*r->by : nullptr;
    return nullptr;
}

bool proves(const Credentials* who, const std::optional<HeldLease>& held) {
    return who != nullptr && held && held->lease.lock_id == who->lock_id && held->key_hash == who->key.hash();
}

bool other_lease(const Observation& o) {
    const auto& before = o.before.record.held;
    const auto& after = o.after.record.held;
    return after && (!before || before->lease.lock_id != after->lease.lock_id);
}

/// The holder gave the lock back, or its lease was announced as run out, and somebody else has the lock now.
bool handed_on(const Observation& o) {
    const bool given_back = (o.as<Release>() != nullptr || o.as<Cancel>() != nullptr) &&
                            proves(credentials_of(o.request), o.before.record.held);
    return other_lease(o) && (given_back || o.as<Expire>() != nullptr);
}

std::string_view audit_invariant(const Observation& o) {
    const bool changed = o.before.record != o.after.record;
    const auto is_new = [&](const AuditEvent& event) { return event.seq > o.before.record.seq; };
    const auto written = static_cast<std::size_t>(std::ranges::count_if(o.after.events, is_new));
    if (changed != (written > 0)) return "a record changes together with an audit event, or neither";
    if (o.decision.record.has_value() != changed) return "a decision carries a record if and only if it changes";
    if (o.after.record.seq != o.before.record.seq + written) return "seq counts the events";
    Digest chain = o.before.record.chain;
    std::uint64_t seq = o.before.record.seq;
    for (std::size_t i = o.after.events.size() - written; i < o.after.events.size(); ++i) {
        const AuditEvent& event = o.after.events[i];
        if (event.prev_hash != chain || event.seq != ++seq || event.hash != kernel::hash_of(event) || event.at != o.now)
            return "every event follows from the one before";
        chain = event.hash;
    }
    return o.after.record.chain == chain ? "" : "the record knows its newest event";
}

std::string_view prune_invariant(const Observation& o) {
    const bool pruned = o.before.record.pruned_seq != o.after.record.pruned_seq;
    if (pruned && (o.as<Prune>() == nullptr || o.as<Prune>()->through < o.after.record.pruned_seq))
        return "nothing is pruned but what was asked for";
    if (o.as<Prune>() != nullptr && o.before.record.held != o.after.record.held) return "pruning changes no lease";
    const auto story = verify_chain(o.after.events, o.status);
    return story ? "" : "what was not pruned is whole";
}

std::string_view token_invariant(const Observation& o) {
    const FencingToken before = o.before.record.token;
    const FencingToken after = o.after.record.token;
    const bool spent = other_lease(o) || (o.granted() && o.as<Break>() != nullptr);
    const auto clock = static_cast<std::uint64_t>(o.now.time_since_epoch().count());
    if (spent && after.value != std::max(before.value + 1, clock))
        return "a grant or a break raises the token by the rule";
    if (!spent && after != before) return "nothing but a grant or a break moves the token";
    if (o.after.record.held && o.after.record.held->lease.token != after) return "the lease carries the newest token";
    return "";
}

/// The step may end the live lease of somebody else, because nobody renewed it for so long.
bool is_stale_take_over(const Observation& o) {
    const auto* r = o.as<Acquire>();
    const auto& before = o.before.record.held;
    if (r == nullptr || !r->takes_over || !before) return false;
    const StaleLease& seen = *r->takes_over;
    const Lease& lease = before->lease;
    return seen.lock_id == lease.lock_id && seen.renew_seq == lease.renew_seq && lease.renewed_at + seen.after <= o.now;
}

std::string_view take_over_invariant(const Observation& o) {
    const auto& before = o.before.record.held;
    if (!other_lease(o) || !before || !is_stale_take_over(o) || !o.live(o.before.record)) return "";
    const auto& told = o.decision.reply->stolen_from;
    if (!told || told->lock_id != before->lease.lock_id) return "a take-over names the lease that it ended";
    if (o.decision.lost_lease != before->lease.lock_id) return "the holder of a stale lease is told";
    const AuditEvent& event = o.after.events.back();
    return event.kind == EventKind::stolen && event.details.contains("stale_since") ? ""
                                                                                    : "the log says that it was stale";
}

std::string_view owner_invariant(const Observation& o) {
    const auto& before = o.before.record.held;
    if (!o.live(o.before.record) || before == o.after.record.held) return "";
    if (proves(credentials_of(o.request), before)) return "";
    if (const auto* r = o.as<Break>(); r != nullptr && r->expected == before->lease.lock_id) return "";
    if (const auto* r = o.as<Answer>(); r != nullptr && !r->by && r->verdict == Verdict::approve) return "";
    if (is_stale_take_over(o)) return "";
    return "only its holder, an operator who saw it, or an approval changes a live lease, unless it is stale";
}

std::string_view expired_invariant(const Observation& o) {
    const auto& before = o.before.record.held;
    if (!before || o.live(o.before.record) || before == o.after.record.held) return "";
    if (handed_on(o)) return "";
    if (other_lease(o)) {
        const bool told = o.granted() && o.decision.reply->stolen_from &&
                          o.decision.reply->stolen_from->lock_id == before->lease.lock_id;
        return o.as<Acquire>() != nullptr && told ? "" : "an expired lease is replaced by a steal that names it";
    }
    if (!o.after.record.held) {
        const auto* r = o.as<Break>();
        const bool broken = r != nullptr && r->expected == before->lease.lock_id;
        return broken || proves(credentials_of(o.request), before)
                   ? ""
                   : "an expired lease is ended by its holder or a break";
    }
    const auto* r = o.as<Renew>();
    const bool revived =
        r != nullptr && r->revive == Revive::yes && proves(&r->as, before) && !o.before.record.is_announced();
    return revived ? "" : "an expired lease comes back by a revival alone";
}

std::string_view announcing_invariant(const Observation& o) {
    const auto is_end = [&](const AuditEvent& event) {
        return event.seq > o.before.record.seq && event.kind == EventKind::expired;
    };
    const auto ends = std::ranges::count_if(o.after.events, is_end);
    const auto* r = o.as<Expire>();
    if (ends != (r != nullptr && o.granted() ? 1 : 0)) return "an Expire announces, once, and nothing else does";
    const auto& before = o.before.record.held;
    if (r != nullptr && o.granted()) {
        if (!before || before->lease.lock_id != r->lock_id) return "no lease is announced but the one that was seen";
        if (o.live(o.before.record)) return "no live lease is announced as run out";
        if (o.before.record.is_announced()) return "no lease is announced twice";
        if (!o.after.record.is_announced() && !handed_on(o)) return "what was announced is remembered or handed on";
    }
    if (o.before.record.is_announced() && o.after.record.held == before && !o.after.record.is_announced())
        return "what was announced stays announced";
    return o.after.record.is_announced() && o.after.record.pending ? "a question ends with the lease" : "";
}

std::string_view lease_invariant(const Observation& o) {
    const auto& held = o.after.record.held;
    if (!held) return "";
    const Lease& lease = held->lease;
    if (lease.max_until && lease.expires_at > *lease.max_until) return "no lease goes beyond its longest hold";
    const auto& before = o.before.record.held;
    if (!other_lease(o)) {
        if (before->lease.token != lease.token || before->key_hash != held->key_hash)
            return "a lease keeps token and key";
        return before->lease.max_until == lease.max_until ? "" : "a longest hold does not move";
    }
    if (o.before.record.ended && o.before.record.ended->lock_id == lease.lock_id)
        return "an ended lock_id never comes back";
    if (before && (!o.after.record.ended || o.after.record.ended->lock_id != before->lease.lock_id))
        return "the lease before is remembered as ended";
    return lease.expires_at > o.now ? "" : "a new lease is live";
}

std::string_view handing_on_invariant(const Observation& o) {
    const auto lives = [&](const Ticket& t) { return t.expires_at > o.now; };
    const auto first = std::ranges::find_if(o.before.tickets, lives);
    const auto& held = o.after.record.held;
    if (o.decision.handed_to.has_value() != handed_on(o)) return "who is handed the lock is named";
    if (handed_on(o)) {
        if (first == o.before.tickets.end() || held->lease.lock_id != first->lock_id ||
            held->key_hash != first->key_hash || o.decision.handed_to != first->lock_id)
            return "a lock is handed on to the first in line";
        return held->lease.expires_at <= first->expires_at ? "" : "who may be gone holds no longer than it would wait";
    }
    const bool announced = o.as<Expire>() != nullptr && o.granted();
    const bool given_back = (o.before.record.held && !held && o.as<Break>() == nullptr) || announced;
    if (given_back && first != o.before.tickets.end() && first->claim)
        return "a lock that somebody waits for is handed on";
    return "";
}

std::string_view refusal_invariant(const Observation& o) {
    if (o.granted()) return "";
    if (o.before.record != o.after.record) return "a refusal changes no record";
    if (o.decision.drop_ticket) return "a refusal drops no ticket";
    const auto* r = o.as<Acquire>();
    if (o.decision.put_ticket && (r == nullptr || !r->ticket || o.decision.put_ticket->lock_id != r->as.lock_id))
        return "a refusal leaves at most the waiter's own ticket";
    return "";
}

std::string_view queue_invariant(const Observation& o) {
    const auto* r = o.as<Acquire>();
    const auto mine = [&](const Ticket& t) { return r != nullptr && t.lock_id == r->as.lock_id; };
    const auto own = std::ranges::find_if(o.before.tickets, mine);
    const bool waited = own != o.before.tickets.end() && own->expires_at > o.now;
    if (r != nullptr && other_lease(o)) {
        for (const Ticket& t : o.before.tickets)
            if (t.expires_at > o.now && !mine(t) && (!waited || t.number < own->number))
                return "grants come in the order of tickets";
        if (std::ranges::any_of(o.others, [&](const Record& other) { return o.live(other); }))
            return "no grant while an excluding lock is held";
    }
    const auto* who = credentials_of(o.request);
    for (const Ticket& t : o.before.tickets) {
        const auto kept = std::ranges::find(o.after.tickets, t.lock_id, &Ticket::lock_id);
        const auto& held = o.after.record.held;
        const bool handed = held && held->lease.lock_id == t.lock_id && held->key_hash == t.key_hash;
        const bool owned = who != nullptr && who->lock_id == t.lock_id && who->key.hash() == t.key_hash;
        if (t.expires_at <= o.now) continue;
        if (kept == o.after.tickets.end() && !handed && !owned) return "nobody loses a live ticket through others";
        if (kept != o.after.tickets.end() && *kept != t && !owned) return "nobody's live ticket is changed by others";
        if (kept != o.after.tickets.end() && kept->number != t.number) return "a live ticket keeps its number";
    }
    if (o.after.record.held && std::ranges::find(o.after.tickets, o.after.record.held->lease.lock_id,
                                                 &Ticket::lock_id) != o.after.tickets.end())
        return "who holds does not wait";
    return "";
}

/// Safety alone would be kept by a store that refuses everything.
std::string_view liveness_invariant(const Observation& o) {
    if (o.granted()) return "";
    const Record& record = o.before.record;
    // A lease that was announced as run out is nobody's, although it may seem live to a clock that was put back.
    const bool announced = record.is_announced();
    const bool holds = proves(credentials_of(o.request), record.held) && !announced;
    const bool live = o.live(record);
    if (o.as<Cancel>() != nullptr) return "a cancel is never refused";
    if (o.as<Release>() != nullptr && holds) return "a holder can release";
    if (o.as<Renew>() != nullptr && holds && live) return "a holder can renew";
    if (const auto* r = o.as<Renew>(); r != nullptr && holds && r->revive == Revive::yes) {
        const auto& until = record.held->lease.max_until;
        if (!until || *until > o.now) return "a holder can revive";
    }
    if (const auto* r = o.as<Break>(); r != nullptr && record.held && record.held->lease.lock_id == r->expected)
        return "an operator can break what is there";
    if (o.as<ReportFenced>() != nullptr && record.seq > 0) return "what a resource refused can be told";
    if (const auto* r = o.as<Expire>(); r != nullptr && record.held && !live && !announced)
        return record.held->lease.lock_id == r->lock_id ? "anybody can announce a lease that ran out" : "";
    if (const auto* r = o.as<Check>(); r != nullptr && live && !announced && record.held->lease.token == r->token)
        return "a current token is current";
    const auto* r = o.as<Acquire>();
    if (r == nullptr || (live && !holds && !is_stale_take_over(o))) return "";
    if (live && holds) return "a repeat is granted";
    const bool used = (record.held && record.held->lease.lock_id == r->as.lock_id) ||
                      (record.ended && record.ended->lock_id == r->as.lock_id);
    const bool first = std::ranges::none_of(o.before.tickets, [&](const Ticket& t) {
        return t.expires_at > o.now && (t.lock_id != r->as.lock_id || t.key_hash != r->as.key.hash());
    });
    const bool excluded = std::ranges::any_of(o.others, [&](const Record& other) { return o.live(other); });
    return !used && first && !excluded ? "a lock that nobody holds or waits for, or that is stale, is granted" : "";
}

std::string_view reply_invariant(const Observation& o) {
    if (o.granted() && o.decision.reply->lock != o.status) return "a granted reply shows the lock as it was saved";
    if (const auto* r = o.as<Acquire>(); r != nullptr && o.granted()) {
        const auto& held = o.after.record.held;
        if (!proves(&r->as, held) || !o.live(o.after.record)) return "a granted Acquire holds";
    }
    if (o.as<Renew>() != nullptr && o.granted() && !o.live(o.after.record)) return "a granted Renew holds";
    if (!o.decision.record) return "";
    return kernel::decode_record(kernel::encode(o.after.record)) == o.after.record
               ? ""
               : "every record survives its byte form";
}

}  // namespace

std::string broken_by(LittleStore& store, const Request& request) {
    const LockName& name = name_of(request);
    const Shelf& shelf = store.shelf(name);
    const Before before{shelf.record, shelf.tickets};
    std::vector<Record> others;
    for (const LockName& other : kernel::others_of(request)) others.push_back(store.shelf(other).record);
    const Decision decision = store.decide(request);
    const Observation seen{request, decision, before, store.shelf(name), others, store.status(name), store.now()};
    for (const auto invariant :
         {audit_invariant, prune_invariant, token_invariant, owner_invariant, take_over_invariant, expired_invariant,
          announcing_invariant, lease_invariant, handing_on_invariant, refusal_invariant, queue_invariant,
          liveness_invariant, reply_invariant})
        if (const std::string_view broken = invariant(seen); !broken.empty()) return std::string(broken);
    return "";
}

}  // namespace holdfast::tests
