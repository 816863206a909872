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

/// The stored state of one lock, and the state that a step reads.
namespace holdfast::kernel {

/// How a lease ended. `stolen` is that of a lease that was taken over because it ran out or was stale, or that
/// an Expire announced.
enum class Ending : std::uint8_t { released = 1, stolen = 2, broken = 3, transferred = 4 };

/// The last lease that ended: the one before `held`, or `held` itself once an Expire has announced it. It makes a
/// repeated release harmless, and prevents a late duplicate of its Acquire from granting the lock to a holder that is
/// gone.
struct Ended {
    LockId lock_id{};
    KeyHash key_hash{};
    Ending how = Ending::released;

    [[nodiscard]] bool operator==(const Ended&) const = default;
};

/// A lease, and the hash of the key that proves its holder.
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

    /// An Expire has announced that the lease in `held` ran out: it is kept to be stolen from, and its holder cannot
    /// use it any more. Then, and only then, `ended` names the same lease as `held`. So this needs no field of its own,
    /// and is false for records of older versions.
    [[nodiscard]] bool is_announced() const { return held && ended && ended->lock_id == held->lease.lock_id; }

    [[nodiscard]] bool operator==(const Record&) const = default;
};

/// The lease that a waiter requests, without its holder.
struct Claim {
    std::string operation{};
    std::string reason{};
    std::chrono::milliseconds ttl{0};
    std::optional<std::chrono::milliseconds> max_hold{};
    std::map<std::string, std::string> meta{};
    std::string address{};  ///< Where the waiter's request came from: `Sender`.

    [[nodiscard]] bool operator==(const Claim&) const = default;
};

/// A place in the queue. It is a lease, too: a waiter that does not keep it alive drops out.
struct Ticket {
    LockId lock_id{};  ///< Of the lease that the waiter asks for.
    KeyHash key_hash{};
    std::uint64_t number = 0;  ///< Order of arrival.
    Holder holder{};
    Instant enqueued_at{};
    Instant expires_at{};
    /// With it, a release hands the lock on to this waiter. Absent if the waiter has to take it itself,
    /// because more than this lock must be looked at.
    std::optional<Claim> claim{};

    [[nodiscard]] bool operator==(const Ticket&) const = default;
};

/// The part of the queue that a step reads. Tickets that have expired are left out, except for `own`.
struct Queue {
    std::optional<Ticket> head{};   ///< The lowest number.
    std::optional<Ticket> own{};    ///< The one that `ticket_of` names, if there is one.
    std::uint64_t last_number = 0;  ///< The highest number, of any ticket.
    std::uint64_t waiters = 0;
};

/// What a store knows of a lock that cannot be read completely.
struct Damage {
    std::string what{};                 ///< For people: `the record`.
    std::vector<std::uint8_t> bytes{};  ///< That cannot be read; empty where they are missing.
    std::optional<Record> record{};     ///< If that is not it.
    // Known from the audit log and from copies of the record's values. All zero if nothing is known.
    FencingToken token{};          ///< No higher one is known.
    std::uint64_t seq = 0;         ///< Of the newest event.
    Digest chain{};                ///< Its hash.
    std::uint64_t pruned_seq = 0;  ///< Of the event before the oldest.

    /// Of an event that can be read: the newest, or the oldest.
    void saw_newest(const AuditEvent& event);
    void saw_oldest(const AuditEvent& event);
};

/// Everything that one step reads.
struct State {
    Record record;
    Queue queue{};
    std::vector<Record> others{};    ///< The records of the request's `unless_held`, in its order.
    std::optional<Damage> damage{};  ///< Then the others are not known. For a Repair only.
};

/// A record of a lock that was never used.
[[nodiscard]] Record blank(LockName name);

/// A lock that cannot be read, as users see it.
[[nodiscard]] LockStatus unreadable_status(const LockName& name, Instant now);

/// A record as users see it.
[[nodiscard]] LockStatus status_of(const Record& record, std::uint64_t waiters, Instant now);

/// Identifies the state of the host's clocks: it changes when the wall clock is moved and when the host boots.
struct ClockMark {
    std::string boot_id{};
    std::chrono::milliseconds offset{0};  ///< Wall clock minus boot time.

    [[nodiscard]] bool operator==(const ClockMark&) const = default;
};

}  // namespace holdfast::kernel
