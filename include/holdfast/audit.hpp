#pragma once

#include "holdfast/lease.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] holdfast {

/// What happened. The numbers are stored and covered by the hashes: none is changed or used again.
enum class EventKind : std::uint8_t {
    acquired = 1,            ///< A new lease. After an `expired`, the details name the lease that had run out.
    renewed = 2,             ///< The lease lasts longer. Most of a long log.
    released = 3,            ///< The holder gave the lock back, or a waiter a grant that came too late.
    stolen = 4,              ///< A new lease in the place of one that had run out, which the details name.
    broken = 5,              ///< An operator ended a live lease; `actor` and `reason` say who and why.
    transferred = 6,         ///< The holder gave the lease to another holder, with a new token.
    revived = 7,             ///< A lease that had run out goes on.
    override_requested = 8,  ///< Somebody asked for a lock that another holds.
    override_approved = 9,   ///< The lock went to the asker, with a new token.
    override_denied = 10,    ///< The lock stayed with its holder.
    pruned = 11,             ///< Older events were removed.
    expired = 12,   ///< The lease has run out and cannot be revived; `expired_at` in the details says since when.
    fenced = 13,    ///< A resource refused a write with a token that is no longer the current one.
    repaired = 14,  ///< Unreadable data was replaced; `damaged` in the details has its bytes.
};
/// The newest kind, for those that read stored events: every number from 1 up to this one is a kind.
inline constexpr EventKind newest_event_kind = EventKind::repaired;
[[nodiscard]] std::string_view name_of(EventKind kind);

/// One change of one lock, written in the same atomic step as the change: a change whose event could not be written did
/// not happen, and there is no event without its change.
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
    std::map<std::string, std::string> details{};  ///< What is special to the kind: see docs/reference/json.md.
    Digest prev_hash{};                            ///< Zero for the first event of a lock.
    Digest hash{};                                 ///< SHA-256 over all other fields.

    [[nodiscard]] bool operator==(const AuditEvent&) const = default;
};

/// Which events to read. Without a name: of all locks, in the order of their time.
///
/// There is no total order over all locks: two changes at the same millisecond come in the order of their names, and a
/// clock that was stepped back shows in it. The order of one lock is that of `seq`, and is exact.
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
/// Refused with `audit_chain_broken` and the first event that does not fit: one that was altered, is missing, or stands
/// at another place. What it cannot find: a user that may write to the store and recomputes every hash up to the
/// record.
[[nodiscard]] Result<void> verify_chain(const std::vector<AuditEvent>& events, const LockStatus& status);

}  // namespace holdfast
