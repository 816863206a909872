#pragma once

#include "kernel/step.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <vector>

/// For stores that read everything that a batch needs at once, and write everything that it changed at
/// once: what lies between the two. No I/O, no clock.
namespace holdfast::stores {

/// What a batch needs to know of one lock.
struct Wanted {
    LockName name;
    bool may_create = false;            ///< A request may turn a lock that was never used into one that is.
    bool may_change = false;            ///< False if the batch only looks at it (`unless_held`, Check).
    bool excludes = false;              ///< An Acquire is granted only while it is free (`unless_held`).
    std::size_t depth = 0;              ///< How many live tickets from the head of its queue.
    std::vector<LockId> own_tickets{};  ///< Tickets that are needed wherever they stand.

    /// By one request: who knows the head of its queue knows enough to hand it on.
    [[nodiscard]] bool is_asked_for_once() const { return depth == depth_of_one; }
    static constexpr std::size_t depth_of_one = 2;
};

/// What the store found of it.
struct LockView {
    kernel::Record record;
    /// Its deadlines were moved, because the store's clock went back since it was written. Whoever changes
    /// something saves that, or the lease would last one more ttl at every look.
    bool moved = false;
    std::vector<kernel::Ticket> tickets{};  ///< In any order, each once. Dead ones may be among them.
    std::vector<LockId> moved_tickets{};    ///< Whose deadlines among them were moved likewise.
    std::uint64_t last_number = 0;          ///< The highest number, of any ticket.
    std::uint64_t waiters = 0;              ///< How many tickets live, in all of the queue.
};

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
    /// Who is to be woken: the waiter whom the lock was handed on to, or the first in line, if it may take the lock.
    std::optional<LockId> next{};

    [[nodiscard]] bool empty() const { return !record && put.empty() && dropped.empty(); }
};

/// What becomes of the claims of those who queue up.
enum class Claims {
    kept,
    dropped,  ///< Whose lease is bound to a session must take the lock itself, in that session.
};

/// One `Store::apply`.
class Batch {
public:
    /// `requests` must outlive the batch.
    explicit Batch(std::span<const Request> requests, Claims claims = Claims::kept);
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch();

    /// What to read, in byte order of the names: who locks rows in this order meets no deadlock.
    [[nodiscard]] const std::vector<Wanted>& wanted() const { return wanted_; }

    /// What was read. An error, `record_corrupt` for example, blocks the requests that need this lock and no others.
    void found(const LockName& name, Result<LockView> view);

    /// Decides all requests, in order, at `now`: the store's clock, read after the locks were.
    ///
    /// Where several clocks judge (the nodes of a cluster), nobody takes over a lease before it has been
    /// expired for `margin`.
    [[nodiscard]] std::vector<Reply> run(Instant now, std::chrono::milliseconds margin = {});

    /// What `run` leaves to be written, in byte order of the names. Empty if nothing changes.
    [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }

private:
    struct Lock;

    [[nodiscard]] Reply decide(const Request& request, Instant now, std::chrono::milliseconds margin);
    [[nodiscard]] kernel::State state_of(const Request& request, const Lock& lock, Instant now) const;

    std::span<const Request> requests_;
    Claims claims_;
    std::vector<Wanted> wanted_;
    std::map<LockName, Lock> locks_;
    std::vector<Change> changes_;
};

}  // namespace holdfast::stores
