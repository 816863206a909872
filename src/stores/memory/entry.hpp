#pragma once

#include "kernel/record.hpp"

#include <algorithm>
#include <map>

namespace holdfast::stores::memory {

/// One lock.
struct Entry {
    explicit Entry(const LockName& name) : record(kernel::blank(name)) {}
    kernel::Record record;
    std::map<std::uint64_t, kernel::Ticket> tickets;  ///< By number.
    std::map<std::int64_t, AuditEvent> events;        ///< By their number among those of all locks.

    [[nodiscard]] std::uint64_t waiters(Instant now) const {
        return static_cast<std::uint64_t>(
            std::ranges::count_if(tickets, [&](const auto& ticket) { return ticket.second.expires_at > now; }));
    }
};

using Entries = std::map<LockName, Entry>;

}  // namespace holdfast::stores::memory
