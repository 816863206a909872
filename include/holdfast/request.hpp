#pragma once

#include "holdfast/lease.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// What can be asked of a store, and what it answers: values, without behaviour. The rules that decide
/// are in `docs/PROTOCOL.md`; every store follows the same ones.
///
/// Every request is one atomic step on one lock: it is granted and changes the lock together with its audit event, or
/// it is refused and changes nothing. What each may be refused with stands in its comment; besides that, any request
/// can be refused with `usage` when a text in it is too long, and with `record_corrupt` when the lock cannot be read.
///
/// After `outcome_unknown` the same request may be sent again, unless its comment says otherwise.
namespace [[gnu::visibility("default")]] holdfast {

/// Who sent a request through a daemon, as that daemon knows it, for the audit log. Empty for whoever works with the
/// store itself. It decides nothing.
struct Sender {
    std::string user{};     ///< Proven; empty where nobody has to prove anything.
    std::string address{};  ///< Where the request came from.

    [[nodiscard]] bool operator==(const Sender&) const = default;
};

/// A lease whose holder may be gone, as it was seen: its lock_id, and how often it had been renewed. Any renewal since
/// then protects it.
struct StaleLease {
    LockId lock_id{};
    std::uint64_t renew_seq = 0;
    std::chrono::milliseconds after{0};  ///< It is stale when it was granted or renewed so long ago, and not before.

    [[nodiscard]] bool operator==(const StaleLease&) const = default;
};

/// Take the lock. Granted when it is free or its lease has run out, nobody is before you in the queue,
/// and none of `unless_held` is held. Repeating it with the same credentials while the lease lives
/// gives the same token and renews it.
///
/// Refused with `lock_conflict` and the holder while another lease is live, another waiter is first in the queue, or
/// one of `unless_held` is held; with `lock_not_held` or `lock_expired` when these credentials have been used for a
/// lease that is over.
///
/// With `takes_over` it is also granted while that lease is live, if it is stale and nobody is before you in the queue:
/// one step, so it cannot meet a renewal. The event is `stolen`, like that of a lease that ran out, and tells since
/// when nobody renewed. Refused with `lock_conflict` when the lease was renewed meanwhile, is another one or is not
/// stale yet.
struct Acquire {
    LockName name;
    Credentials as;  ///< Chosen anew for every lease, before the first request leaves.
    Holder holder{};
    std::string operation{};
    std::string reason{};
    Ttl ttl;
    std::optional<std::chrono::milliseconds> max_hold{};  ///< No renewal goes beyond this from now.
    /// With a value, a refused request leaves a ticket in the queue for that long. Repeating the request
    /// keeps the ticket alive; Cancel removes it.
    std::optional<Ttl> ticket{};
    std::vector<LockName> unless_held{};  ///< Locks that exclude this one. They are looked at, not taken.
    std::map<std::string, std::string> meta{};
    std::optional<StaleLease> takes_over{};  ///< Without a ticket: a take-over succeeds at once or is refused.
    Sender sender{};
};

enum class Revive { no, yes };

/// Hold on for `ttl` more, never beyond max_until. `Revive::yes` also brings back a lease that ran out
/// and that nobody took, with its token; no longer after an Expire.
///
/// Refused with `lock_expired` when it ran out, and with `lock_not_held` when the lock is free, another lease is there,
/// or the key is wrong. The queue plays no part.
struct Renew {
    LockName name;
    Credentials as;
    Ttl ttl;
    Revive revive = Revive::no;
    std::optional<std::map<std::string, std::string>> meta{};  ///< Replaces what the lease shows. Absent: unchanged.
    Sender sender{};
};

/// Give the lock back. Allowed after expiry, as long as nobody took it and no Expire came first: then it is
/// refused with `lock_expired`. Repeating it is harmless.
///
/// The first waiter in the queue is granted the lock in the same step. Refused with `lock_not_held` when nothing of
/// these credentials is there.
struct Release {
    LockName name;
    Credentials as;
    Sender sender{};
};

/// Leave the queue. If the grant came first, it is given back. Never refused.
struct Cancel {
    LockName name;
    Credentials as;
    Sender sender{};
};

/// Hand a live lease to another holder in one step: new lock_id, new token, no gap. Refused as Renew is.
struct Transfer {
    LockName name;
    Credentials as;
    Holder to{};
    Credentials to_as;  ///< Chosen by the caller, passed on to the new holder.
    std::string reason{};
    Sender sender{};
};

/// Take a lock away from the holder that was seen there. The lock is free afterwards, its token has risen, and the
/// audit log names actor and victim. It is not handed on: an operator may want to look before the next one begins.
///
/// Refused with `lock_conflict` when another lease is there by now, and with `lock_not_held` when the lock is free.
struct Break {
    LockName name;
    LockId expected{};  ///< The lease that the operator saw. Another one is never touched.
    std::string actor{};
    std::string reason{};
    Sender sender{};
};

/// Announce that a lease has run out, and give its lock to the first waiter. For whoever looks after locks that
/// nobody asks for, such as a daemon; a steal does not need it.
///
/// Granted when an Acquire of somebody else could take the lease over, and not before: the same clock, with the same
/// margin. Writes the event `expired`, and hands the lock on to the first waiter as a Release would. Without such a
/// waiter the record keeps the lease, state `expired`, until the next grant, which is still `stolen` from it.
///
/// The lease ends for its holder with this: neither Renew, also with `Revive::yes`, nor Check, Release, Transfer or a
/// repeated Acquire is granted any more; they are refused with `lock_expired`, and with what another lease means to
/// them once the lock has been handed on or taken.
///
/// Refused with `lock_conflict` and the holder while the lease is live, and with `lock_not_held` when nothing is held,
/// another lease is there, or this one was announced before. So of several that send it at once exactly one is granted,
/// and one event is written. After `outcome_unknown` a repeat that is refused with `lock_not_held` does not say whether
/// it was the first one that counted: the history of the lock does.
struct Expire {
    LockName name;
    LockId lock_id{};  ///< The lease that was seen to have run out. Another one is never touched.
    Sender sender{};
};

/// Is this token still the current one? Changes nothing. An answer is true when it is given and no longer: a resource
/// that must not be written by two needs a fence of its own.
///
/// Refused with `fencing_mismatch`, `lock_expired` or `lock_not_held`; with `lock_conflict` when one of `unless_held`
/// is held.
struct Check {
    LockName name;
    FencingToken token{};
    std::optional<LockId> lock_id{};
    std::vector<LockName> unless_held{};
};

/// Ask the holder, or an operator, to hand the lock over. Refused with `lock_not_held` when nothing is held, and with
/// `denied` when somebody else has asked already and waits for the answer.
struct Ask {
    LockName name;
    Credentials as;  ///< What the lease will carry if the answer is yes.
    Holder holder{};
    std::string reason{};
    Ttl ttl;
    Ttl valid_for;  ///< How long the question stands.
    Sender sender{};
};

enum class Verdict { approve, deny };

/// Answer the question that `ask_id` names. Approval moves the lock to the asker with a new token. Refused with
/// `lock_not_held` when that question is not asked any more, and with `denied` when `by` is not the holder.
struct Answer {
    LockName name;
    LockId ask_id{};
    Verdict verdict = Verdict::deny;
    std::string actor{};
    std::string reason{};
    std::optional<Credentials> by{};  ///< Absent: an operator answers.
    /// What approval allows at most, whatever was asked for: the ttl, and how long the lease can be renewed.
    std::optional<std::chrono::milliseconds> longest_ttl{};
    std::optional<std::chrono::milliseconds> max_hold{};
    /// The operator approves a question of their own. Marked in the audit log: `break_glass`.
    bool breaks_glass = false;
    Sender sender{};
};

/// Remove audit events of a lock, the oldest first: those up to the number `through`, and no more than `most` of
/// them. The newest one stays, and an event of its own tells what was removed. Nothing else changes, and repeating
/// it is harmless.
struct Prune {
    static constexpr std::uint64_t most = 1000;

    LockName name;
    std::uint64_t through = 0;
    std::string actor{};
    std::string reason{};
    Sender sender{};
};

/// Make a lock usable again of which something cannot be read: its record, or its queue. Nothing that can be read is
/// lost: a lease in a record that can be read goes on. Without one the lock is free afterwards, with a token above
/// everything that is still known of it and above the store's clock in milliseconds. Whoever held it hears of the loss
/// at the next renewal. The queue is emptied; a waiter that lives comes back to it by itself.
///
/// The only request that is not refused with `record_corrupt`. Granted without a change where everything can be read,
/// so repeating it is harmless. The event `repaired` keeps the bytes that could not be read.
struct Repair {
    LockName name;
    std::string actor{};
    std::string reason{};
    Sender sender{};
};

/// Tell the audit log that a protected resource refused a write, because its fence had seen a newer holder. Writes the
/// event `fenced` and changes nothing else: the refusal happened at the resource, whatever the store says of it.
///
/// Refused with `lock_not_held` for a lock that was never used. A repeat writes another event.
struct ReportFenced {
    LockName name;
    FencingToken token{};  ///< That was refused.
    LockId lock_id{};
    Holder holder{};         ///< Who was refused.
    std::string resource{};  ///< Where: a database, without secrets.
    std::string reason{};
    Sender sender{};
};

using Request = std::variant<Acquire, Renew, Release, Cancel, Transfer, Break, Check, Ask, Answer, Prune, Expire,
                             Repair, ReportFenced>;

[[nodiscard]] const LockName& name_of(const Request& request);

/// Null for a request that changes nothing, and so is not in the audit log.
[[nodiscard]] const Sender* sender_of(const Request& request);

/// The lease that a grant took over because it had run out, or was stale.
struct StolenFrom {
    LockId lock_id{};
    FencingToken token{};
    Holder holder{};
    Instant expired_at{};  ///< When it ended: of a stale one, the moment of the grant.

    [[nodiscard]] bool operator==(const StolenFrom&) const = default;
};

/// A request that was granted. As durable as the grade of its store says.
struct Outcome {
    LockStatus lock;  ///< After the change.
    std::optional<StolenFrom> stolen_from{};

    [[nodiscard]] bool operator==(const Outcome&) const = default;
};

/// Granted, or refused with the reason. "Nobody knows" is an error of the whole `Store::apply`.
using Reply = Result<Outcome>;

}  // namespace holdfast
