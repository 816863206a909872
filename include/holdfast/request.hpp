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
namespace holdfast {

/// Take the lock. Granted when it is free or its lease has run out, nobody is before you in the queue,
/// and none of `unless_held` is held. Repeating it with the same credentials while the lease lives
/// gives the same token and renews it.
struct Acquire {
    LockName name;
    Credentials as;
    Holder holder{};
    std::string operation{};
    std::string reason{};
    Ttl ttl;
    std::optional<std::chrono::milliseconds> max_hold{};  ///< No renewal goes beyond this from now.
    /// With a value, a refused request leaves a ticket in the queue for that long. Repeating the request
    /// keeps the ticket alive; Cancel removes it.
    std::optional<Ttl> ticket{};
    std::vector<LockName> unless_held{};
    std::map<std::string, std::string> meta{};
};

enum class Revive { no, yes };

/// Hold on for `ttl` more, never beyond max_until. `Revive::yes` also brings back a lease that ran out
/// and that nobody took, with its token.
struct Renew {
    LockName name;
    Credentials as;
    Ttl ttl;
    Revive revive = Revive::no;
};

/// Give the lock back. Allowed after expiry, as long as nobody took it. Repeating it is harmless.
struct Release {
    LockName name;
    Credentials as;
};

/// Leave the queue. If the grant came first, it is given back. Never refused.
struct Cancel {
    LockName name;
    Credentials as;
};

/// Hand a live lease to another holder in one step: new lock_id, new token, no gap.
struct Transfer {
    LockName name;
    Credentials as;
    Holder to{};
    Credentials to_as;  ///< Chosen by the caller, passed on to the new holder.
    std::string reason{};
};

/// Take a lock away from whoever was seen holding it.
struct Break {
    LockName name;
    LockId expected{};  ///< The lease that the operator saw. Another one is never touched.
    std::string actor{};
    std::string reason{};
};

/// Is this token still the current one? Changes nothing.
struct Check {
    LockName name;
    FencingToken token{};
    std::optional<LockId> lock_id{};
    std::vector<LockName> unless_held{};
};

/// Ask the holder, or an operator, to hand the lock over.
struct Ask {
    LockName name;
    Credentials as;  ///< What the lease will carry if the answer is yes.
    Holder holder{};
    std::string reason{};
    Ttl ttl;
    Ttl valid_for;  ///< How long the question stands.
};

enum class Verdict { approve, deny };

/// Answer the question that `ask_id` names. Approval moves the lock to the asker with a new token.
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
};

using Request = std::variant<Acquire, Renew, Release, Cancel, Transfer, Break, Check, Ask, Answer, Prune>;

[[nodiscard]] const LockName& name_of(const Request& request);

/// The lease that a grant took over because it had run out.
struct StolenFrom {
    LockId lock_id{};
    FencingToken token{};
    Holder holder{};
    Instant expired_at{};

    [[nodiscard]] bool operator==(const StolenFrom&) const = default;
};

/// A request that was granted.
struct Outcome {
    LockStatus lock;  ///< After the change.
    std::optional<StolenFrom> stolen_from{};

    [[nodiscard]] bool operator==(const Outcome&) const = default;
};

/// Granted, or refused with the reason. "Nobody knows" is an error of the whole `Store::apply`.
using Reply = Result<Outcome>;

}  // namespace holdfast
