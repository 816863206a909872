#pragma once

#include "access/grant.hpp"
#include "holdfast/request.hpp"

#include <span>
#include <string_view>

namespace holdfast::access {

/// Everything that can be asked of the daemon by a caller that has to prove who it is. What is not here is refused;
/// `/healthz`, `/readyz`, `/openapi.json`, signing in, and the files of the console are for everybody.
enum class Endpoint {
    acquire,
    renew,
    release,
    cancel,
    transfer,
    check,
    fenced,
    unlock,
    expire,
    prune,
    repair,
    override_request,
    override_answer_by_lease,  ///< As the holder, with its lease key.
    override_withdraw,         ///< Denying the question that the caller asked.
    override_answer,           ///< As an operator.
    gate,
    wait,
    lock,
    locks,
    history,
    overrides,
    events,
    store,
    examine,
    metrics,
    session,
};

/// What a role must cover.
enum class Scope {
    lock,      ///< The lock that the request names.
    any_lock,  ///< At least one area; the answer has only what the caller may see.
    store,     ///< Everything: the answer speaks of all locks at once.
};

/// The least that an endpoint needs.
struct EndpointRow {
    Endpoint endpoint;
    std::string_view name;
    Role needs;
    Scope scope;
};

/// One row for each endpoint, and the only place that says who may what.
[[nodiscard]] std::span<const EndpointRow> endpoint_table();
[[nodiscard]] const EndpointRow& row_of(Endpoint endpoint);

/// For an endpoint about a lock.
[[nodiscard]] bool may(const Identity& caller, Endpoint endpoint, const LockName& name);
/// For an endpoint about all locks, or whether the caller may use an endpoint about a lock at all.
[[nodiscard]] bool may(const Identity& caller, Endpoint endpoint);

/// Where a request belongs. An answer without a lease key is an operator's.
[[nodiscard]] Endpoint endpoint_of(const Request& request);

/// Refused with `denied` unless the caller may send this. The locks of `unless_held` must be readable, because the
/// reply tells who holds them.
[[nodiscard]] Result<void> permitted(const Identity& caller, const Request& request);

/// Whether a question is the caller's own. Always false for a caller that nobody knows.
[[nodiscard]] bool is_own(const Identity& caller, const Override& question);

/// The rule for an operator that answers `question`: somebody who asked may withdraw the question, and an admin may
/// approve their own with a reason, which is marked in the audit log. Refused with `denied`, or with `usage` where only
/// the reason is missing.
[[nodiscard]] Result<void> permitted_answer(const Identity& caller, const Override& question, Answer& answer);

/// Writes into a request who sends it: what is known of the caller replaces what the caller says of itself.
void sign(const Identity& caller, Request& request);

/// The refusal for a caller that is known and may not do this.
[[nodiscard]] Error denied(const Identity& caller, Endpoint endpoint);

}  // namespace holdfast::access
