#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/store.hpp"
#include "stores/common/batch.hpp"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace holdfast::stores {

/// The lock_id by which the owner of `watch` is notified: that of its ticket, or of its lease.
[[nodiscard]] inline std::optional<LockId> notified_as(const Watch& watch) {
    return watch.ticket ? watch.ticket : watch.lease;
}

/// True if `watch` is about a lease that the lock no longer has. `stored`: the lock's present lease.
[[nodiscard]] inline bool is_lost(const Watch& watch, const std::optional<Lease>& stored) {
    return watch.lease && (!stored || stored->lock_id != *watch.lease);
}

/// One subscription, as a `WakeSource` knows it.
struct HubWatch {
    std::uint64_t id = 0;
    Watch watch;
};

/// What looking at one watch showed.
struct Sighting {
    /// Present if the watch fires: the result for the subscriber.
    std::optional<Result<std::optional<HandedOn>>> fired{};
    /// Otherwise the time until the next look if nothing is heard. A wake-up may be lost, and nobody announces that a
    /// lease ran out.
    std::chrono::milliseconds next_look{1000};
};

/// Which watches to look at now.
struct Heard {
    bool all = false;  ///< Wake-ups may have been lost, after a broken connection for example.
    std::vector<std::uint64_t> ids{};
};

/// What a store does for its `WakeHub`. Only the hub's thread calls it, except for `interrupt`.
class WakeSource {
public:
    WakeSource() = default;
    WakeSource(const WakeSource&) = delete;
    WakeSource& operator=(const WakeSource&) = delete;
    virtual ~WakeSource() = default;

    /// Begins to listen for what concerns these watches. Called before they are looked at for the first time, so that
    /// nothing that happens in between is missed. A source that cannot listen just now may try again in `listen`; until
    /// then its watches are only looked at.
    virtual void add(std::span<const HubWatch> watches) = 0;
    /// They have fired, or their subscriptions have ended. Some may never have been added.
    virtual void remove(std::span<const HubWatch> watches) = 0;

    /// Looks at all of them, in as few round trips as it can, and answers each in its place.
    [[nodiscard]] virtual std::vector<Sighting> look(std::span<const HubWatch> watches) = 0;

    /// Sleeps until something is heard, `most` of real time has passed, or `interrupt` is called. Only a hint.
    [[nodiscard]] virtual Heard listen(std::chrono::milliseconds most) = 0;
    /// Ends `listen` at once, or the next one if none is running. From any thread.
    virtual void interrupt() = 0;
};

/// All subscriptions of a Store object, and the one thread that serves them. The thread starts with the first one and
/// stays, blocked and with all signals blocked, until the hub ends.
///
/// May be used from any thread. An exception from a source or from a subscriber's function ends the process.
class WakeHub {
public:
    /// `clock` must outlive the hub. The thread may still look when the last subscription has ended, so the hub ends
    /// before what `source` refers to does.
    WakeHub(const Clock& clock, std::unique_ptr<WakeSource> source);
    WakeHub(const WakeHub&) = delete;
    WakeHub& operator=(const WakeHub&) = delete;
    /// No subscription may be left. Never returns in a process that was forked since the first one: the thread for
    /// which it waits is not there. Such a process leaves by `_exit` or exec.
    ~WakeHub();

    /// As `Store::subscribe`.
    [[nodiscard]] Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired);

    /// Wakes the watches that this process's own changes concern, for a store where nobody else announces them: the
    /// one whose ticket is `Change::next`, the holder of `Change::lost_lease`, and those that are not called by a
    /// lock_id if the record changed.
    void announce(std::span<const Change> changes);

private:
    class Handle;
    struct Entry {
        HubWatch watch;
        WatchFired fired;
        bool is_added = false;  ///< The source knows of it. Before that it needs no wake-up, because its first look is
                                ///< still to come.
        Boottime look_at = not_scheduled;
    };
    static constexpr Boottime not_scheduled =
        Boottime::max();  ///< Not in the schedule: not added yet, or being looked at.
    static constexpr Boottime at_once = Boottime::min();
    using Lock = std::unique_lock<std::mutex>;
    /// The name and the ticket that a change names, and the id of a watch of them.
    using Key = std::tuple<LockName, std::optional<LockId>, std::uint64_t>;

    [[nodiscard]] Result<void> start_thread();
    void serve(const std::stop_token& stop);
    void tell_source(Lock& lock);
    void look_at_due(Lock& lock);
    [[nodiscard]] std::vector<HubWatch> take_due();
    void fire(Lock& lock, std::uint64_t id, Result<std::optional<HandedOn>> result);
    void take_in(const Heard& heard);
    [[nodiscard]] std::chrono::milliseconds time_to_sleep() const;
    [[nodiscard]] static Key key_of(const HubWatch& watch);
    [[nodiscard]] bool wake(const LockName& name, const std::optional<LockId>& called);
    void schedule(Entry& entry, Boottime look_at);
    [[nodiscard]] Entry take_out(std::uint64_t id);
    void end(std::uint64_t id);

    const Clock& clock_;
    const std::unique_ptr<WakeSource> source_;  ///< Used by the thread alone, except for `interrupt`.

    std::mutex mutex_;                     ///< Guards everything below.
    std::condition_variable_any changed_;  ///< There is a subscription, or one that was running has returned.
    std::unordered_map<std::uint64_t, Entry> entries_{};
    std::set<Key> by_name_{};
    std::set<std::pair<Boottime, std::uint64_t>> schedule_{};  ///< When to look at which entry.
    std::vector<HubWatch> added_{};                            ///< The source does not know of them yet.
    std::vector<HubWatch> removed_{};                          ///< The source still knows of them.
    std::uint64_t last_id_ = 0;
    std::uint64_t running_ = 0;  ///< The subscription whose function is running; 0: none.

    std::jthread thread_{};  ///< Last, so that it ends before what it uses.
};

}  // namespace holdfast::stores
