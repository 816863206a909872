#include "kernel/step.hpp"

#include "kernel/codec.hpp"
#include "kernel/details.hpp"
#include "kernel/refusal.hpp"

#include <algorithm>
#include <cstdlib>

namespace holdfast::kernel {
namespace {

bool live(const std::optional<HeldLease>& held, Instant now) { return held && held->lease.expires_at > now; }
bool live(const std::optional<Ticket>& ticket, Instant now) { return ticket && ticket->expires_at > now; }
bool live(const std::optional<PendingAsk>& pending, Instant now) { return pending && pending->ask.expires_at > now; }

/// Rises with every call, and across a wipe or a restored backup too, because the clock went on.
FencingToken next_token(FencingToken previous, Instant now) {
    const auto clock = static_cast<std::uint64_t>(std::max<std::int64_t>(now.time_since_epoch().count(), 0));
    const FencingToken next{std::max(previous.value + 1, clock)};
    // A token that a double cannot hold would be rounded by somebody, some day. 2^53 ms is the year 287396.
    if (next.value >= FencingToken::limit) std::abort();
    return next;
}

Instant expiry(Instant now, std::chrono::milliseconds ttl, std::optional<Instant> max_until) {
    return max_until ? std::min(now + ttl, *max_until) : now + ttl;
}

Claim claim_of(const Acquire& r) { return {r.operation, r.reason, r.ttl.time(), r.max_hold, r.meta, r.sender.address}; }

/// One request on its way to a decision. Each `on` reads `state_` and either refuses, or changes
/// `next_` and writes the event of that change.
class Step {
public:
    Step(const State& state, Sender sender, Instant now) : state_(state), now_(now), sender_(std::move(sender)) {}

    Decision on(const Acquire& r) {
        const auto& held = state_.record.held;
        if (held && held->lease.lock_id == r.as.lock_id) return repeat(r);
        if (was_used(r.as.lock_id))
            return refuse({Errc::lock_not_held, "this lock_id belongs to a lease that has ended; choose a new one"});
        // A ticket that has run out protects nobody: whether it is still stored must not show.
        if (live(state_.queue.own, now_) && state_.queue.own->key_hash != r.as.key.hash())
            return refuse({Errc::denied, "this lock_id belongs to somebody else's place in the queue"});
        if (const auto obstacle = what_blocks(r)) return queue_up(r, *obstacle);
        return grant(r);
    }

    Decision on(const Renew& r) {
        if (!is_holder(r.as)) return refuse(not_yours(state_.record, waiters_, now_));
        const Lease& lease = state_.record.held->lease;
        const bool over = (lease.max_until && *lease.max_until <= now_) || state_.record.is_announced();
        const bool expired = lease.expires_at <= now_;
        if (over || (expired && r.revive == Revive::no)) return refuse(ran_out(state_.record, waiters_, now_));
        if (r.meta) next_.held->lease.meta = *r.meta;
        return extend(r.ttl.time(), expired ? EventKind::revived : EventKind::renewed);
    }

    Decision on(const Release& r) {
        // Also when the next holder is there already: the answer to a lost release must not depend on how
        // quickly somebody else came.
        const auto& ended = state_.record.ended;
        const bool repeated = ended && ended->how == Ending::released && ended->lock_id == r.as.lock_id &&
                              ended->key_hash == r.as.key.hash();
        if (repeated) return granted();
        if (!is_holder(r.as)) return refuse(not_yours(state_.record, waiters_, now_));
        // Its end is in the log already. A second event would tell that it was given back in time.
        if (state_.record.is_announced()) return refuse(ran_out(state_.record, waiters_, now_));
        return release();
    }

    Decision on(const Cancel& r) {
        if (is_holder(r.as) && !state_.record.is_announced()) return release();
        if (state_.queue.own && state_.queue.own->key_hash == r.as.key.hash()) leave_queue(*state_.queue.own);
        return granted();
    }

    Decision on(const Transfer& r) {
        const auto& held = state_.record.held;
        const bool repeated = held && held->lease.lock_id == r.to_as.lock_id && held->key_hash == r.to_as.key.hash() &&
                              state_.record.ended && state_.record.ended->lock_id == r.as.lock_id;
        if (repeated) return granted();
        if (!is_holder(r.as)) return refuse(not_yours(state_.record, waiters_, now_));
        if (!is_usable()) return refuse(ran_out(state_.record, waiters_, now_));
        if (was_used(r.to_as.lock_id))
            return refuse({Errc::usage, "this lock_id was used before; choose a new one for the new holder"});
        const Lease previous = held->lease;
        end(Ending::transferred);
        Lease lease = previous;
        lease.lock_id = r.to_as.lock_id;
        lease.holder = r.to;
        lease.acquired_at = lease.renewed_at = now_;
        lease.renew_seq = 0;
        hold(std::move(lease), r.to_as.key.hash());
        record(EventKind::transferred, next_.held->lease, previous.holder.text, r.reason, from(previous));
        return granted();
    }

    Decision on(const Break& r) {
        if (!state_.record.held) return refuse(not_held());
        const Lease victim = state_.record.held->lease;
        if (victim.lock_id != r.expected) return refuse(held_by_another(state_.record, waiters_, now_));
        end(Ending::broken);
        next_.token = next_token(next_.token, now_);
        record(EventKind::broken, victim, r.actor, r.reason, from(victim));
        return granted();
    }

    Decision on(const Expire& r) {
        const auto& held = state_.record.held;
        if (!held) return refuse(not_held());
        if (held->lease.lock_id != r.lock_id) return refuse(not_yours(state_.record, waiters_, now_));
        if (state_.record.is_announced()) return refuse(announced_before(state_.record, waiters_, now_));
        if (live(held, now_)) return refuse(held_by_another(state_.record, waiters_, now_));
        const Lease& lease = held->lease;
        end(Ending::stolen);
        record(EventKind::expired, lease, "", "", {{"expired_at", to_rfc3339(lease.expires_at)}});
        // Without a waiter the lease stays: the next grant is a steal, and has to name it.
        if (!hand_on(lease, taken_from(lease, now_))) {
            next_.held = held;
            lost_lease_.reset();
        }
        return granted();
    }

    Decision on(const ReportFenced& r) {
        if (state_.record.seq == 0) return refuse(not_held());
        Lease refused;
        refused.lock_id = r.lock_id;
        refused.holder = r.holder;
        record(EventKind::fenced, refused, "", r.reason,
               {{"refused_token", std::to_string(r.token.value)}, {"resource", r.resource}});
        return granted();
    }

    Decision on(const Check& r) {
        const auto& held = state_.record.held;
        const bool same = held && held->lease.token == r.token && (!r.lock_id || *r.lock_id == held->lease.lock_id);
        if (!same && (held || r.token != state_.record.token))
            return refuse(state_.record.seq == 0 ? not_held() : stale_token(state_.record, r.token, waiters_, now_));
        if (!same) return refuse(not_held());
        if (!is_usable()) return refuse(ran_out(state_.record, waiters_, now_));
        if (const Record* other = excluded()) return refuse(held_by_another(*other, 0, now_));
        return granted();
    }

    Decision on(const Ask& r) {
        if (!is_usable()) return refuse(not_held());
        if (is_holder(r.as)) return refuse({Errc::usage, "you hold this lock already"});
        const auto& pending = state_.record.pending;
        const bool mine = pending && pending->ask.lock_id == r.as.lock_id && pending->key_hash == r.as.key.hash();
        if (mine && live(pending, now_)) return granted();
        if (live(pending, now_))
            return refuse({Errc::denied, pending->ask.asker.display() + " has asked already and waits for an answer"});
        if (was_used(r.as.lock_id) || state_.record.held->lease.lock_id == r.as.lock_id)
            return refuse({Errc::usage, "this lock_id was used before; choose a new one"});
        next_.pending = PendingAsk{{r.as.lock_id, r.holder, r.reason, r.ttl.time(), now_, now_ + r.valid_for.time()},
                                   r.as.key.hash()};
        Lease asked;
        asked.lock_id = r.as.lock_id;
        asked.holder = r.holder;
        record(EventKind::override_requested, asked, "", r.reason, from(state_.record.held->lease));
        return granted();
    }

    Decision on(const Answer& r) {
        if (r.by && !is_holder(*r.by)) return refuse({Errc::denied, "only the holder or an operator can answer"});
        if (!is_usable()) return refuse(not_held());
        const auto pending = state_.record.pending;
        if (!live(pending, now_) || pending->ask.lock_id != r.ask_id)
            return refuse({Errc::lock_not_held, "nobody waits for this answer any more"});
        Lease asker;
        asker.lock_id = pending->ask.lock_id;
        asker.holder = pending->ask.asker;
        if (r.verdict == Verdict::deny) {
            next_.pending.reset();
            record(EventKind::override_denied, asker, r.actor, r.reason, {});
            return granted();
        }
        const Lease previous = state_.record.held->lease;
        end(Ending::transferred);
        asker.operation = previous.operation;
        asker.reason = pending->ask.reason;
        asker.ttl = r.longest_ttl ? std::min(pending->ask.ttl, *r.longest_ttl) : pending->ask.ttl;
        asker.acquired_at = asker.renewed_at = now_;
        if (r.max_hold) asker.max_until = now_ + *r.max_hold;
        asker.expires_at = expiry(now_, asker.ttl, asker.max_until);
        hold(std::move(asker), pending->key_hash);
        Details details = from(previous);
        if (r.breaks_glass) details.emplace("break_glass", "yes");
        record(EventKind::override_approved, next_.held->lease, r.actor, r.reason, std::move(details));
        return granted();
    }

    Decision on(const Repair& r) {
        const auto& damage = state_.damage;
        if (!damage) return granted();
        Lease about;
        if (damage->record) {
            next_ = *damage->record;
            if (next_.held) about = next_.held->lease;
        } else {
            next_ = blank(state_.record.name);
            next_.token = next_token(damage->token, now_);
            next_.seq = damage->seq;
            next_.chain = damage->chain;
            next_.pruned_seq = damage->pruned_seq;
        }
        waiters_ = 0;
        record(EventKind::repaired, about, r.actor, r.reason, kernel::details_of(*damage));
        Decision decision = granted();
        decision.clears_queue = true;
        return decision;
    }

    Decision on(const Prune& r) {
        const Record& kept = state_.record;
        // What the record goes on from stays, and so does a lock that was never used.
        const std::uint64_t last = std::max<std::uint64_t>(kept.seq, 1) - 1;
        const std::uint64_t through = std::min({r.through, last, kept.pruned_seq + Prune::most});
        if (through <= kept.pruned_seq) return granted();
        Lease about;
        if (kept.ended) about.lock_id = kept.ended->lock_id;
        if (kept.held) about = kept.held->lease;
        next_.pruned_seq = through;
        record(EventKind::pruned, about, r.actor, r.reason, {{"through", std::to_string(through)}});
        return granted();
    }

private:
    [[nodiscard]] bool is_holder(const Credentials& who) const {
        const auto& held = state_.record.held;
        return held && held->lease.lock_id == who.lock_id && held->key_hash == who.key.hash();
    }

    /// Whether the holder can act on the lease. Others wait for the clock alone: see `live`.
    [[nodiscard]] bool is_usable() const { return live(state_.record.held, now_) && !state_.record.is_announced(); }

    [[nodiscard]] bool was_used(const LockId& lock_id) const {
        return state_.record.ended && state_.record.ended->lock_id == lock_id;
    }

    [[nodiscard]] const Record* excluded() const {
        const auto other = std::ranges::find_if(state_.others, [&](const Record& r) { return live(r.held, now_); });
        return other == state_.others.end() ? nullptr : &*other;
    }

    [[nodiscard]] Error not_held() const {
        Error error{Errc::lock_not_held, state_.record.name.text() + " is not held by anybody"};
        error.holder = std::make_shared<const LockStatus>(status_of(state_.record, waiters_, now_));
        return error;
    }

    [[nodiscard]] std::optional<Error> what_blocks(const Acquire& r) const {
        const auto& head = state_.queue.head;
        const bool is_next = !head || head->lock_id == r.as.lock_id;
        if (live(state_.record.held, now_)) {
            if (!r.takes_over) return held_by_another(state_.record, waiters_, now_);
            if (!is_next || !is_stale(*r.takes_over))
                return not_taken_over(state_.record, *r.takes_over, waiters_, now_);
        }
        if (!is_next) return first_in_line(state_.record, *head, waiters_, now_);
        if (const Record* other = excluded()) return held_by_another(*other, 0, now_);
        return std::nullopt;
    }

    /// The lease that the caller saw is still there, nobody has renewed it since, and its time to do so is over.
    [[nodiscard]] bool is_stale(const StaleLease& seen) const {
        const Lease& lease = state_.record.held->lease;
        return lease.lock_id == seen.lock_id && lease.renew_seq == seen.renew_seq &&
               now_ - lease.renewed_at >= seen.after;
    }

    /// The caller asks again for what it already has, because it never heard the answer.
    Decision repeat(const Acquire& r) {
        if (!is_holder(r.as)) return refuse({Errc::denied, "this lock_id belongs to somebody else's lease"});
        if (!is_usable()) return refuse(ran_out(state_.record, waiters_, now_));
        // Renewed, because the caller counts its time from this request, not from the lost one.
        return extend(r.ttl.time(), EventKind::renewed);
    }

    Decision queue_up(const Acquire& r, const Error& obstacle) {
        if (!r.ticket) return refuse(obstacle);
        Ticket ticket;
        if (live(state_.queue.own, now_)) {
            ticket = *state_.queue.own;
        } else {
            ticket = {r.as.lock_id, r.as.key.hash(), state_.queue.last_number + 1, r.holder, now_, now_, {}};
            // A release does not read the records of other locks.
            if (r.unless_held.empty()) ticket.claim = claim_of(r);
        }
        ticket.expires_at = now_ + r.ticket->time();
        Decision decision = refuse(obstacle);
        decision.put_ticket = std::move(ticket);
        return decision;
    }

    Decision grant(const Acquire& r) {
        std::optional<StolenFrom> stolen_from;
        const Claim claim = claim_of(r);
        Details details = details_of(claim);
        if (state_.record.held) {
            const Lease& previous = state_.record.held->lease;
            const Instant ended = std::min(previous.expires_at, now_);
            stolen_from = StolenFrom{previous.lock_id, previous.token, previous.holder, ended};
            details.merge(taken_from(previous, now_));
            end(Ending::stolen);
        }
        hold(lease_for(claim, r.as.lock_id, r.holder), r.as.key.hash());
        const EventKind kind = stolen_from ? EventKind::stolen : EventKind::acquired;
        record(kind, next_.held->lease, "", r.reason, std::move(details));

        Decision decision = granted();
        decision.reply->stolen_from = std::move(stolen_from);
        return decision;
    }

    Decision extend(std::chrono::milliseconds ttl, EventKind kind) {
        Lease& lease = next_.held->lease;
        lease.ttl = ttl;
        lease.renewed_at = now_;
        ++lease.renew_seq;
        lease.expires_at = expiry(now_, ttl, lease.max_until);
        record(kind, lease, "", "", {{"ttl_ms", std::to_string(ttl.count())}});
        return granted();
    }

    Decision release() {
        const Lease lease = state_.record.held->lease;
        end(Ending::released);
        record(EventKind::released, lease, "", "", {});
        hand_on(lease, {});
        return granted();
    }

    /// Grants the lock, whose lease is `over`, to the first waiter in the same step. False if there is none, or if that
    /// waiter has to take the lock itself. `details` go into the event.
    bool hand_on(const Lease& over, Details details) {
        const auto& head = state_.queue.head;
        // A ticket of that lease itself is no waiter: its owner has had its turn.
        if (!head || !head->claim || head->lock_id == over.lock_id) return false;
        const Ticket& next = *head;
        // The waiter may be gone, so its lease lasts as long as its ticket would have, until it renews. Nor less: until
        // then the waiter may ask under this lock_id.
        Lease lease = lease_for(*next.claim, next.lock_id, next.holder);
        lease.expires_at = lease.max_until ? std::min(next.expires_at, *lease.max_until) : next.expires_at;
        leave_queue(next);
        hold(std::move(lease), next.key_hash);
        details.merge(details_of(*next.claim));
        sender_ = {.address = next.claim->address};  // Who takes the lock is not who gave it back.
        record(EventKind::acquired, next_.held->lease, "", next.claim->reason, std::move(details));
        handed_to_ = next.lock_id;
        return true;
    }

    static Details details_of(const Claim& claim) {
        Details details{{"ttl_ms", std::to_string(claim.ttl.count())}};
        if (!claim.operation.empty()) details.emplace("operation", claim.operation);
        return details;
    }

    [[nodiscard]] Lease lease_for(const Claim& claim, const LockId& lock_id, const Holder& holder) const {
        Lease lease;
        lease.lock_id = lock_id;
        lease.holder = holder;
        lease.operation = claim.operation;
        lease.reason = claim.reason;
        lease.ttl = claim.ttl;
        lease.acquired_at = lease.renewed_at = now_;
        if (claim.max_hold) lease.max_until = now_ + *claim.max_hold;
        lease.expires_at = expiry(now_, claim.ttl, lease.max_until);
        lease.meta = claim.meta;
        return lease;
    }

    /// The current lease is over. A question about it is over with it.
    void end(Ending how) {
        next_.ended = Ended{next_.held->lease.lock_id, next_.held->key_hash, how};
        if (how != Ending::released) lost_lease_ = next_.held->lease.lock_id;
        next_.held.reset();
        next_.pending.reset();
    }

    void leave_queue(const Ticket& ticket) {
        if (ticket.expires_at > now_) --waiters_;
        drop_ticket_ = ticket.lock_id;
    }

    /// A new grant: the one place where a lease gets its token. Its holder waits no longer: a ticket left
    /// behind would keep the others out after this lease has ended.
    void hold(Lease lease, const KeyHash& key_hash) {
        if (state_.queue.own) leave_queue(*state_.queue.own);
        next_.token = next_token(next_.token, now_);
        lease.token = next_.token;
        next_.held = HeldLease{std::move(lease), key_hash};
    }

    void record(EventKind kind, const Lease& lease, std::string actor, std::string reason, Details details) {
        AuditEvent event{.name = next_.name};
        event.seq = next_.seq + 1;
        event.at = now_;
        event.kind = kind;
        event.token = next_.token;
        event.lock_id = lease.lock_id;
        event.holder = lease.holder;
        event.actor = std::move(actor);
        event.reason = std::move(reason);
        event.details = with_sender(std::move(details), sender_, event.holder);
        event.prev_hash = next_.chain;
        event.hash = hash_of(event);
        next_.seq = event.seq;
        next_.chain = event.hash;
        next_.changed_at = now_;
        events_.push_back(std::move(event));
    }

    /// Success, with whatever has changed so far.
    Decision granted() {
        Decision decision{.reply = Outcome{status_of(next_, waiters_, now_), std::nullopt},
                          .drop_ticket = drop_ticket_,
                          .handed_to = handed_to_,
                          .lost_lease = lost_lease_};
        if (!events_.empty()) decision.record = next_;
        decision.events = std::move(events_);
        return decision;
    }

    static Decision refuse(Error error) { return {.reply = std::unexpected(std::move(error))}; }

    const State& state_;
    const Instant now_;
    Sender sender_;  ///< Of the change whose event is written next.
    Record next_ = state_.record;
    std::uint64_t waiters_ = state_.queue.waiters;
    std::optional<LockId> drop_ticket_;
    std::optional<LockId> handed_to_;
    std::optional<LockId> lost_lease_;
    std::vector<AuditEvent> events_;
};

}  // namespace

Decision step(const State& state, const Request& request, Instant now) {
    if (auto error = beyond_limits(request)) return {.reply = std::unexpected(std::move(*error))};
    const Sender* const sender = sender_of(request);
    return std::visit([&](const auto& r) { return Step(state, sender ? *sender : Sender{}, now).on(r); }, request);
}

}  // namespace holdfast::kernel
