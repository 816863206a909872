#pragma once

#include "holdfast/store.hpp"
#include "stores/etcd/key_watches.hpp"
#include "stores/etcd/remote.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <span>

/// The key that a waiter has to watch for its turn.
namespace holdfast::stores::etcd {

/// A waiter looks again after this time even if its watch reports nothing.
constexpr std::chrono::milliseconds look_again_after{10'000};

/// The state that a waiter waits to change, from a look.
struct WaitTarget {
    std::uint64_t seq = 0;
    std::optional<LockId> lease{};          ///< That the lock has, live or not.
    bool is_due = false;                    ///< Its turn may have come, or it has lost its place.
    WatchedKey watched{};                   ///< The key whose change brings it nearer to its turn.
    Revision revision = 0;                  ///< The revision of the look.
    std::optional<KeyValue> next_ticket{};  ///< Of the first in the queue: the second ticket,
    std::uint64_t waiters = 0;              ///< and how many there are.
    /// When a lease or a ticket may have run out, which no event announces.
    std::chrono::milliseconds look_again = look_again_after;
};

/// Looks for all of `watches`, many in one round trip, and answers each in its place.
[[nodiscard]] std::vector<Result<WaitTarget>> read_wait_targets(Remote& remote, std::span<const Watch> watches,
                                                                base::CallBudget& budget);

/// The reads of the transaction that gave a waiter its ticket.
struct TakenTicket {
    std::optional<KeyValue> meta{};
    std::optional<KeyValue> record{};
    Found queue{};  ///< Its beginning, with the ticket.
    Revision revision = 0;
    Moment moment{};
};
/// The target without a look. Absent if too little was read.
[[nodiscard]] std::optional<WaitTarget> predict_wait_target(Remote& remote, const LockName& name, const LockId& waiter,
                                                            TakenTicket taken);

/// Whether a waiter could take the lock, going by its record as it is stored now.
[[nodiscard]] bool is_its_turn(const LockId& waiter, const std::string& stored_record, const LockName& name);

/// Whether the lock has that lease, likewise.
[[nodiscard]] bool has_lease(const LockId& lease, const std::string& stored_record, const LockName& name);

/// The targets of waiters that have just got their tickets and have not begun to wait. May be used from any thread.
class WaitPredictions {
public:
    void remember(const LockId& waiter, WaitTarget target);
    /// Absent if the prediction is too old, since its times count from when it was made.
    [[nodiscard]] std::optional<WaitTarget> take(const LockId& waiter);

private:
    struct Prediction {
        WaitTarget target{};
        Boottime since{};
    };

    std::mutex mutex_;
    std::map<LockId, Prediction> waiters_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores::etcd
