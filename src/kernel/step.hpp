#pragma once

#include "kernel/record.hpp"

#include <optional>
#include <vector>

/// The protocol. The only code that decides who gets a lock: no I/O, no clock, no thread.
namespace holdfast::kernel {

/// What one request leads to. A store saves all of it in one atomic step, or nothing.
struct Decision {
    Reply reply;
    std::optional<Record> record;      ///< The lock's new record; absent when it does not change.
    std::vector<AuditEvent> events;    ///< At least one if and only if the record changes.
    std::optional<Ticket> put_ticket;  ///< Add, or replace by lock_id.
    std::optional<LockId> drop_ticket;
    std::optional<LockId> handed_to;  ///< The waiter whom the lock was handed on to, and who does not know it yet.
};

/// Decides `request` at `now`, the store's clock read after the state was locked.
[[nodiscard]] Decision step(const State& state, const Request& request, Instant now);

/// The locks whose records a step reads beside its own.
[[nodiscard]] const std::vector<LockName>& others_of(const Request& request);

/// The ticket that a step reads as `Queue::own`: of the requester, or of who is handed the lock.
[[nodiscard]] std::optional<LockId> ticket_of(const Request& request);

/// A record of a lock that was never used.
[[nodiscard]] Record blank(LockName name);

/// A record as users see it.
[[nodiscard]] LockStatus status_of(const Record& record, std::uint64_t waiters, Instant now);

}  // namespace holdfast::kernel
