#pragma once

#include "holdfast/audit.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/request.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// What a store keeps of one lock, and what the protocol reads of it.
namespace holdfast::kernel {

/// How the lease before the current state ended.
enum class Ending : std::uint8_t { released = 1, stolen = 2, broken = 3, transferred = 4 };

/// The last lease that ended. It makes a repeated release harmless, and keeps a late duplicate of its
/// Acquire from granting the lock to somebody who is long gone.
struct Ended {
    LockId lock_id{};
    KeyHash key_hash{};
    Ending how = Ending::released;

    [[nodiscard]] bool operator==(const Ended&) const = default;
};

/// A lease together with what proves its holder.
struct HeldLease {
    Lease lease{};
    KeyHash key_hash{};

    [[nodiscard]] bool operator==(const HeldLease&) const = default;
};

struct PendingAsk {
    Override ask{};
    KeyHash key_hash{};

    [[nodiscard]] bool operator==(const PendingAsk&) const = default;
};

/// One lock. Stays after release, so that tokens only rise.
struct Record {
    LockName name;
    FencingToken token{};  ///< The highest ever granted, or spent by a break.
    std::optional<HeldLease> held{};
    std::optional<Ended> ended{};
    std::optional<PendingAsk> pending{};
    std::uint64_t seq = 0;         ///< Of the newest audit event.
    Digest chain{};                ///< Its hash.
    Instant changed_at{};          ///< Its time.
    std::uint64_t pruned_seq = 0;  ///< Of the newest audit event that was pruned; 0 if none was.

    [[nodiscard]] bool operator==(const Record&) const = default;
};

/// What somebody asks for: a lease, apart from who is to hold it.
struct Claim {
    std::string operation{};
    std::string reason{};
    std::chrono::milliseconds ttl{0};
    std::optional<std::chrono::milliseconds> max_hold{};
    std::map<std::string, std::string> meta{};

    [[nodiscard]] bool operator==(const Claim&) const = default;
};

/// A place in the queue. It is a lease too: who does not keep it alive drops out.
struct Ticket {
    LockId lock_id{};  ///< Of the lease that the waiter asks for.
    KeyHash key_hash{};
    std::uint64_t number = 0;  ///< Order of arrival.
    Holder holder{};
    Instant enqueued_at{};
    Instant expires_at{};
    /// With it, whoever gives the lock back hands it on to this waiter. Absent if the waiter has to take it itself,
    /// because more than this lock must be looked at.
    std::optional<Claim> claim{};

    [[nodiscard]] bool operator==(const Ticket&) const = default;
};

/// What a step needs of the queue. Tickets that have expired are left out, except for `own`.
struct Queue {
    std::optional<Ticket> head{};   ///< The lowest number.
    std::optional<Ticket> own{};    ///< The one that `ticket_of` names, if there is one.
    std::uint64_t last_number = 0;  ///< The highest number, of any ticket.
    std::uint64_t waiters = 0;
};

/// Everything that one step reads.
struct State {
    Record record;
    Queue queue{};
    std::vector<Record> others{};  ///< The records of the request's `unless_held`, in its order.
};

/// What changes when the wall clock is moved, and when the host boots.
struct ClockMark {
    std::string boot_id{};
    std::chrono::milliseconds offset{0};  ///< Wall clock minus boot time.

    [[nodiscard]] bool operator==(const ClockMark&) const = default;
};

}  // namespace holdfast::kernel
