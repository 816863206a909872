#pragma once

#include "kernel/record.hpp"

#include <optional>
#include <vector>

/// The protocol: the only code that decides which request gets a lock. No I/O, no clock, no thread.
namespace holdfast::kernel {

/// What one request leads to. A store saves all of it in one atomic step, or nothing.
struct Decision {
    Reply reply;
    std::optional<Record> record{};      ///< The lock's new record; absent when it does not change.
    std::vector<AuditEvent> events{};    ///< At least one if and only if the record changes.
    std::optional<Ticket> put_ticket{};  ///< Add, or replace by lock_id.
    std::optional<LockId> drop_ticket{};
    std::optional<LockId> handed_to{};   ///< The waiter that was given the lock and has not been told yet.
    std::optional<LockId> lost_lease{};  ///< The lease that somebody ended for its holder, who has not heard of it yet.
    bool clears_queue = false;           ///< Drop all tickets, readable or not.
};

/// Decides `request` at `now`, the store's clock read after the state was locked.
[[nodiscard]] Decision step(const State& state, const Request& request, Instant now);

/// The locks whose records a step reads beside its own.
[[nodiscard]] const std::vector<LockName>& others_of(const Request& request);

/// The ticket that a step reads as `Queue::own`: of the requester, or of the waiter that is handed the lock.
[[nodiscard]] std::optional<LockId> ticket_of(const Request& request);

}  // namespace holdfast::kernel
