#pragma once

#include "holdfast/audit.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/request.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace [[gnu::visibility("default")]] holdfast {

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
    /// The store was marked as used when this was last read. Locks are never removed, so a marked store without locks
    /// was emptied. Every store that outlives its process is marked with the first lock that this version writes; false
    /// means nothing.
    bool was_used = false;
    /// The last read may be out of date: it came from a standby, a replica, a part of a cluster, or a place where
    /// nothing can be changed. No lock can be taken there.
    bool may_be_stale = false;
};

/// What a store can and cannot do, as data: for `doctor`, JSON, the conformance suite, and callers that would otherwise
/// have to ask which store it is. Constant for the life of a Store object.
struct StoreProperties {
    /// The locks outlive the Store object, and others, of this and of other processes, work on them, too.
    bool is_shared = false;
    /// `?session=on` is understood: a lease can end with the process that took it.
    bool has_sessions = false;
    /// A lock that is given back wakes its next waiter at once, also in another process. Otherwise the store polls for
    /// its waiters.
    bool pushes = false;
    /// What a batch changes in several locks is committed as one: a crash leaves all of it or nothing.
    bool commits_batches_as_one = false;
    /// Reads show only durable changes, so a waiter that sees its own lease need not ask for the lock again.
    bool shows_only_durable = false;
    /// How finely the clock that judges expiry counts.
    std::chrono::milliseconds clock_resolution{1};
    /// The most bytes that the store takes as one value. A lock's record is one value; the limits of requests keep it
    /// far below. Absent: no limit but memory.
    std::optional<std::size_t> largest_value{};
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
    std::string after{};                     ///< Only names after this one, to read page by page.
    std::optional<std::size_t> limit{};      ///< The first so many. Absent: all.
    /// Locks that cannot be read are listed, too, with the state `unreadable` and nothing but their name. Otherwise the
    /// first of them is an error of the whole call.
    bool with_unreadable = false;
};

/// The state that a waiter has seen and waits to change; or the lease of a holder that wants to be told of its loss.
struct Watch {
    LockName name;
    std::uint64_t seen_seq = 0;      ///< `LockStatus::seq` when it looked.
    std::optional<LockId> ticket{};  ///< Its place in the queue, if it has one.
    std::stop_token stop{};          ///< Ends the sleep at once.
    /// Of a holder: its lease. It fires when the lock no longer has this lease: it was broken, transferred, taken over,
    /// or is gone with the store. It does not fire for renewals, for the end of the lease's time, or for changes of the
    /// queue. Instead of a ticket.
    std::optional<LockId> lease{};
};

/// A lock that was handed on to a waiter by its last holder. As reliable and as durable as a granted reply.
struct HandedOn {
    LockStatus lock;
    Boottime seen_from{};  ///< Before `lock.as_of`: the rest of the lease is counted from here.

    /// Empty unless `waiter` holds `lock`.
    [[nodiscard]] static std::optional<HandedOn> to(const LockId& waiter, LockStatus lock, Boottime seen_from);
};

/// A watch that goes on without a thread of its own, until it has fired or this object ends.
///
/// Once the destructor has returned, the function is not running and is not called any more. So it must not be
/// destroyed by a thread that holds a mutex which the function takes. It may end inside its own function.
class Subscription {
public:
    Subscription() = default;
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;
    virtual ~Subscription() = default;
};

/// Called when a watch fires, with what `Store::wait_for_change` returns.
using WatchFired = std::function<void(Result<std::optional<HandedOn>> result)>;

/// The position of a reader of `Store::events`: opaque text of at most 1 KiB, which outlives the process and is valid
/// for any Store object on the same store. Empty: before the oldest event that is kept.
struct EventCursor {
    static constexpr std::size_t longest = 1024;

    std::string text{};

    [[nodiscard]] bool operator==(const EventCursor&) const = default;
};

/// Some of the events of all locks.
struct EventPage {
    std::vector<AuditEvent> events{};
    EventCursor next{};   ///< The cursor for the next page.
    bool is_last = true;  ///< There were no more events.
    /// Where pages overlap: an event that is not older than this, by the store's clock, can come again, or come late.
    /// Absent where every event comes once, and those of a lock in their order.
    std::optional<Instant> unsettled_since{};
};

/// Where leases live. One implementation per backend.
///
/// May be called from any thread. Whether a lease has expired is judged by the store's clock alone,
/// inside the step that decides. Nothing but `apply` changes what is stored.
class Store {
public:
    /// `clock` must outlive the store.
    explicit Store(const Clock& clock) : clock_(&clock) {}
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;
    virtual ~Store() = default;

    /// What the deadlines of all calls are counted on, and the host's part of a store's time.
    [[nodiscard]] const Clock& clock() const { return *clock_; }

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

    /// Sleeps until the lock may have changed since `watch.seen_seq`, or the deadline passes. With a ticket, until its
    /// owner has the lock or may take it: first in the queue, and nobody holds the lock. With a lease, until the lock
    /// no longer has it; a store that pushes reports that at once, the others within a second. Only a hint: it may
    /// return early, and the caller must look again, unless it is told that the lock is its own. But never much too
    /// late: nobody announces that a lease or a ticket ahead ran out, so the store looks by itself.
    ///
    /// Built on `subscribe`: a thread that only sleeps. Refused as that is, and with the error of a look that failed.
    [[nodiscard]] virtual Result<std::optional<HandedOn>> wait_for_change(const Watch& watch, Deadline deadline);

    /// Calls `fired` once, as soon as `wait_for_change` would return; `watch.stop` counts for nothing here.
    ///
    /// All watches of a Store object share at most one thread, which also calls `fired`: it must not block, and must
    /// not call this store. It may be called before this returns. The store must outlive the subscription.
    [[nodiscard]] virtual Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) = 0;

    /// Events of all locks since `after`, about `limit` of them. Never writes.
    ///
    /// Every event that was not pruned is in a page, also if its change was committed late. Where a store has no order
    /// over all locks, pages overlap: an event can come again, and one of a lock can come before an older one of it.
    /// `client::EventReader` makes each come once and in order for each lock.
    ///
    /// Text that is no cursor of this kind of store is refused with `usage`. A store that was emptied or restored since
    /// the cursor was made is read from its beginning where its events are numbered, and otherwise from the cursor's
    /// time on.
    [[nodiscard]] virtual Result<EventPage> events(const EventCursor& after, std::size_t limit, Deadline deadline) = 0;

    /// The cursor after every event that exists now. Where pages overlap it is a little earlier: the pages from it up
    /// to the first with `is_last` also have events that existed before.
    [[nodiscard]] virtual Result<EventCursor> end_of_events(Deadline deadline) = 0;

    /// Of a store whose leases end with this process (`?session=on`): a new descriptor of the connection, or of the
    /// locked file, by which others see that it lives; for the caller to close. As long as it is open somewhere, the
    /// leases live on although this process has died. Absent where there is none, and while it is in use. May be called
    /// from any thread; never waits.
    [[nodiscard]] virtual std::optional<int> duplicate_session() const { return std::nullopt; }

    /// From now on this object asks for other processes, as a daemon does: no place in a queue that it takes ends with
    /// this process, because the one that waits lives on. May be called from any thread.
    virtual void serve_others() {}

    [[nodiscard]] virtual StoreProperties properties() const = 0;

    [[nodiscard]] virtual StoreInfo info() const = 0;

    /// `info().store_id` as this object last saw it. Cheap: nothing is read as soon as it is known.
    [[nodiscard]] virtual std::optional<StoreId> store_id() const = 0;

    /// Looks at everything that the promise depends on. Never writes.
    [[nodiscard]] virtual std::vector<Finding> examine(Deadline deadline) = 0;

    /// `apply` with a single request.
    [[nodiscard]] Reply apply_one(const Request& request, Deadline deadline);

protected:
    /// The last step of `wait_for_change` after a wake-up, if reads show only durable changes: one look.
    [[nodiscard]] Result<std::optional<HandedOn>> check_handed_over(const Watch& watch, const Clock& clock,
                                                                    Deadline deadline);

private:
    const Clock* clock_;
};

}  // namespace holdfast
