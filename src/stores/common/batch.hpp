#pragma once

#include "kernel/step.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <vector>

/// Decides a batch between one read of everything that it needs and one write of everything that it changed. No I/O, no
/// clock.
namespace holdfast::stores {

/// True if `request` needs `lease` to have run out for everybody, and not only for its own holder.
[[nodiscard]] bool takes_over(const Request& request, const Lease& lease);

/// What a batch needs to know of one lock.
struct Wanted {
    LockName name;
    bool may_create = false;            ///< A request may turn a lock that was never used into one that is.
    bool may_change = false;            ///< False if the batch only looks at it (`unless_held`, Check).
    bool may_take_over = false;         ///< A request may end a lease that has run out (Acquire, Expire).
    bool excludes = false;              ///< An Acquire is granted only while it is free (`unless_held`).
    bool repairs = false;               ///< A Repair asks for it: see `Batch::found_damaged`.
    std::size_t requests = 0;           ///< How many requests are for this lock; `unless_held` does not count.
    std::size_t depth = 0;              ///< How many live tickets from the head of its queue.
    std::vector<LockId> own_tickets{};  ///< Tickets that are needed wherever they stand.

    /// True if the head of its queue is all that a hand-over needs.
    [[nodiscard]] bool is_asked_for_once() const { return requests == 1; }
};

/// What the store found of it.
struct LockView {
    kernel::Record record;
    /// Its deadlines were moved, because the store's clock went back since it was written. A change saves the moved
    /// deadlines, or the lease would last one more ttl at every look.
    bool moved = false;
    std::vector<kernel::Ticket> tickets{};  ///< In any order, each once. Dead ones may be among them.
    std::vector<LockId> moved_tickets{};    ///< Whose deadlines among them were moved likewise.
    std::uint64_t last_number = 0;          ///< The highest number, of any ticket.
    std::uint64_t waiters = 0;              ///< How many tickets live, in all of the queue.
};

/// The first of the tickets that live at `now`; the first of all if none does; null without tickets.
[[nodiscard]] const kernel::Ticket* head_of(const LockView& view, Instant now);

/// Audit events that are to be removed: those with numbers above `after`, up to `through`.
struct Cut {
    std::uint64_t after = 0;
    std::uint64_t through = 0;
};

/// What is to be written of one lock, in one atomic step with all others of the batch.
struct Change {
    LockName name;
    bool is_new = false;  ///< The lock had no record.
    std::optional<kernel::Record> record{};
    std::vector<AuditEvent> events{};  ///< None of those that `cut` removes.
    std::optional<Cut> cut{};
    std::vector<kernel::Ticket> put{};  ///< Add, or replace by lock_id.
    std::vector<kernel::Ticket> dropped{};
    bool clears_queue = false;  ///< Before `put`, all tickets go, also those that cannot be read.
    /// The waiter to wake: the one that got the lock, or the first in the queue if it may take the lock.
    std::optional<LockId> next{};
    std::optional<LockId> lost_lease{};  ///< A lease that another client ended: its holder is woken, too.

    [[nodiscard]] bool empty() const { return !record && put.empty() && dropped.empty() && !clears_queue; }
};

/// What happens to the claims of new waiters.
enum class Claims {
    kept,
    dropped,  ///< A waiter whose lease is bound to a session must take the lock itself, in that session.
};

/// One `Store::apply`.
class Batch {
public:
    /// `requests` must outlive the batch.
    explicit Batch(std::span<const Request> requests, Claims claims = Claims::kept);
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch();

    /// What to read, in byte order of the names: batches that all lock rows in this order cannot deadlock.
    [[nodiscard]] const std::vector<Wanted>& wanted() const { return wanted_; }

    /// What was read. An error, `record_corrupt` for example, blocks the requests that need this lock and no others.
    void found(const LockName& name, Result<LockView> view);

    /// What is known of a lock of which something cannot be read: only for a lock that `Wanted::repairs`. `why` blocks
    /// all requests for the lock before the Repair.
    void found_damaged(const LockName& name, Error why, kernel::Damage damage);

    /// Decides all requests, in order, at `now`: the store's clock, read after the locks were.
    ///
    /// Where several clocks judge (the nodes of a cluster), nobody takes over a lease or announces its end before it
    /// has been expired for `margin`.
    [[nodiscard]] std::vector<Reply> run(Instant now, std::chrono::milliseconds margin = {});

    /// What `run` leaves to be written, in byte order of the names. Empty if nothing changes.
    [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }

private:
    struct Lock;

    [[nodiscard]] Reply decide(const Request& request, Instant now, std::chrono::milliseconds margin);
    [[nodiscard]] static Reply repair(const Request& request, Lock& lock, Instant now);
    [[nodiscard]] kernel::State state_of(const Request& request, const Lock& lock, Instant now) const;

    std::span<const Request> requests_;
    Claims claims_;
    std::vector<Wanted> wanted_;
    std::map<LockName, Lock> locks_;
    std::vector<Change> changes_;
};

}  // namespace holdfast::stores
