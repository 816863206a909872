#pragma once

#include "holdfast/audit.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/request.hpp"

#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace holdfast {

/// What a store promises about a grant that it acknowledged.
enum class Grade {
    a,  ///< Survives a crash and a failover of the store.
    b,  ///< Survives a crash of processes, not a power cut or a failover.
    c,  ///< Can be lost in normal operation. Refused unless `?allow_lossy=on`.
};
[[nodiscard]] std::string_view name_of(Grade grade);

/// What a store is and promises.
struct StoreInfo {
    std::string url{};                  ///< Without secrets.
    std::optional<StoreId> store_id{};  ///< Absent until the first `apply` has created the store.
    Grade grade = Grade::c;
    std::vector<std::string> reasons{};  ///< Why this grade.
    /// The store says of itself that it has had a lock, when this was last read. Locks are never removed, so a store
    /// that says so and has none was emptied. Every store that outlives its process says it, from the first lock on
    /// that this version writes; false means nothing.
    bool was_used = false;
};

/// One thing that `doctor` looked at.
struct Finding {
    std::string name{};
    bool ok = false;
    std::string detail{};
};

struct ListQuery {
    std::string prefix{};                    ///< Of the name, in bytes.
    bool with_free = false;                  ///< Also locks that nobody holds.
    std::optional<Instant> changed_since{};  ///< Only locks with an event at or after this.
    std::string after{};                     ///< Only names behind this one, to read page by page.
    std::optional<std::size_t> limit{};      ///< The first so many. Absent: all.
};

/// What a waiter has seen and waits to see changed.
struct Watch {
    LockName name;
    std::uint64_t seen_seq = 0;      ///< `LockStatus::seq` when it looked.
    std::optional<LockId> ticket{};  ///< Its place in the queue, if it has one.
    std::stop_token stop{};          ///< Ends the sleep at once.
};

/// A lock that was handed on to a waiter by whoever had it. As sure and as durable as a granted reply.
struct HandedOn {
    LockStatus lock;
    Boottime seen_from{};  ///< Before `lock.as_of`: what is left of the lease counts from here.

    /// Empty unless `waiter` holds `lock`.
    [[nodiscard]] static std::optional<HandedOn> to(const LockId& waiter, LockStatus lock, Boottime seen_from);
};

/// Where leases live. One implementation per backend.
///
/// May be called from any thread. Whether a lease has expired is judged by the store's clock alone,
/// inside the step that decides. Nothing but `apply` changes what is stored.
class Store {
public:
    Store() = default;
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;
    virtual ~Store() = default;

    /// Applies `requests` in order and answers each in its place.
    ///
    /// The first call creates the store, so an empty batch does nothing else. Every request is one
    /// atomic step together with its audit event; the batch as a whole is not. A
    /// batch costs one round trip and one durable write, so callers with many requests should send
    /// them together. A granted reply means that the change is as durable as the store's grade says.
    ///
    /// Nothing is decided after the deadline, however long the call was held up on its way: then it is
    /// `store_unavailable`.
    ///
    /// An error of the whole call means that no answer arrived: `store_unavailable` if nothing was
    /// changed, `outcome_unknown` if some requests may have been applied. Data that cannot be read is
    /// `record_corrupt`, never a free lock.
    [[nodiscard]] virtual Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) = 0;

    /// One lock as it is now. A lock that was never used is free with token 0. Never writes.
    [[nodiscard]] virtual Result<LockStatus> inspect(const LockName& name, Deadline deadline) = 0;

    /// Locks by name, in byte order. Never writes.
    [[nodiscard]] virtual Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) = 0;

    /// Audit events, oldest first. Never writes.
    [[nodiscard]] virtual Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) = 0;

    /// Sleeps until the lock may have changed since `watch.seen_seq`, or the deadline passes. With a
    /// ticket, until its owner has the lock or may take it: first in line, and nobody holds. Only a hint: it may
    /// return early, and who returns must look again, unless it is told that the lock is its own. But never much too
    /// late: when a lease or a ticket ahead runs out, nobody is there to say so, and the store finds out by itself.
    [[nodiscard]] virtual Result<std::optional<HandedOn>> wait_for_change(const Watch& watch, Deadline deadline) = 0;

    [[nodiscard]] virtual StoreInfo info() const = 0;

    /// Looks at everything that the promise depends on. Never writes.
    [[nodiscard]] virtual std::vector<Finding> examine(Deadline deadline) = 0;

    /// `apply` with a single request.
    [[nodiscard]] Reply apply_one(const Request& request, Deadline deadline);

protected:
    /// What is left to do for a `wait_for_change` that was woken, where what is seen is durable: it looks once.
    [[nodiscard]] Result<std::optional<HandedOn>> look_whose_it_is(const Watch& watch, const Clock& clock,
                                                                   Deadline deadline);
};

}  // namespace holdfast
