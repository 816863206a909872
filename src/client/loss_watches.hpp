#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/store.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace holdfast::client {

class KeptLease;

/// Subscriptions to the loss of leases: one for each, all served by the one thread of their store's hub.
///
/// They give hints only: the renewer then asks the store with a Check, and the subscription is made again after a
/// pause. So a wrong hint costs at most one Check a second, and a failed Check is repeated. A watch that failed,
/// because the store is away, is no hint.
///
/// May be used from any thread. `tend` and `remove` end subscriptions, which waits for functions that run; so they must
/// not be called with a mutex that `wake` takes.
class LossWatches {
public:
    /// `store` must outlive it. `wake` is called when `take_hints` or `has_work` has something, by the store's hub: it
    /// must not block.
    LossWatches(Store& store, std::function<void()> wake);

    /// Schedules the subscription and returns its time. It is made a little later, so that a short hold needs neither a
    /// thread nor a connection for it.
    Boottime add(const KeptLease& lease, Boottime now);
    /// Ends the subscription of this lease, if it has one.
    void forget(const KeptLease& lease);
    /// The same, and ends its subscription here.
    void remove(const KeptLease& lease);

    /// The leases that may be lost.
    [[nodiscard]] std::vector<const KeptLease*> take_hints(Boottime now);

    /// True if True if `tend` has something to do.
    [[nodiscard]] bool has_work(Boottime now) const;
    /// When `tend` will have something to do, unless a watch fires before.
    [[nodiscard]] Boottime next_work() const;
    /// Makes the subscriptions that are due, and ends those that are not needed.
    void tend(Boottime now);

private:
    struct Entry {
        std::uint64_t id = 0;  ///< Never used again, since a function may be called for a lease that is gone.
        Boottime subscribe_at = Boottime::max();
        bool has_fired = false;
        bool may_be_lost = false;  ///< It fired because of the state of the lock, and not because the store is away.
        std::unique_ptr<Subscription> subscription{};
    };
    /// A subscription that is to be made. `lease` is only a name: it may have gone.
    struct Due {
        const KeptLease* lease;
        std::uint64_t id;
        Watch watch;
    };

    [[nodiscard]] std::unique_ptr<Subscription> take_out(const KeptLease& lease);
    [[nodiscard]] Entry* find(const KeptLease* lease, std::uint64_t id);
    void subscribe(const Due& due, Boottime now);
    void on_fired(const KeptLease* lease, std::uint64_t id, const Result<std::optional<HandedOn>>& result);

    Store& store_;
    const std::function<void()> wake_;

    mutable std::mutex mutex_;  ///< Guards everything below.
    std::unordered_map<const KeptLease*, Entry> entries_{};
    std::vector<std::unique_ptr<Subscription>> ended_{};  ///< To be destroyed outside all mutexes.
    std::uint64_t last_id_ = 0;
};

}  // namespace holdfast::client
