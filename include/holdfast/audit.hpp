#pragma once

#include "holdfast/lease.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

enum class EventKind : std::uint8_t {
    acquired = 1,
    renewed = 2,
    released = 3,
    stolen = 4,
    broken = 5,
    transferred = 6,
    revived = 7,
    override_requested = 8,
    override_approved = 9,
    override_denied = 10,
    pruned = 11,
};
[[nodiscard]] std::string_view name_of(EventKind kind);

/// One change of one lock, written in the same atomic step as the change.
///
/// The events of a lock form a chain: `prev_hash` is the hash of the event before, and `hash` covers
/// every field including it. Changing, removing or reordering an event breaks the chain; that the oldest ones
/// were pruned is known to the lock's record.
struct AuditEvent {
    LockName name;
    std::uint64_t seq = 0;  ///< 1, 2, 3… for each lock, without gaps.
    Instant at{};           ///< The store's clock.
    EventKind kind = EventKind::acquired;
    FencingToken token{};
    LockId lock_id{};
    Holder holder{};
    std::string actor{};  ///< Who did it, where that is not the holder.
    std::string reason{};
    std::map<std::string, std::string> details{};
    Digest prev_hash{};
    Digest hash{};

    [[nodiscard]] bool operator==(const AuditEvent&) const = default;
};

/// Which events to read. Without a name: of all locks, in the order of their time.
struct HistoryQuery {
    enum class Which { newest, oldest };

    std::optional<LockName> name{};
    std::optional<Instant> since{};
    std::uint64_t after_seq = 0;         ///< With a name: only events with a higher seq.
    std::optional<std::size_t> limit{};  ///< So many of them. Absent: all.
    Which which = Which::newest;         ///< Of a limited number.
};

/// Checks the chain of one lock's events: all that were not pruned, oldest first, up to what `status` says.
///
/// Refused with `audit_chain_broken` and the first event that does not fit.
[[nodiscard]] Result<void> verify_chain(const std::vector<AuditEvent>& events, const LockStatus& status);

}  // namespace holdfast
