#pragma once

#include "stores/common/lock_cache.hpp"
#include "stores/etcd/batch_view.hpp"

#include <atomic>
#include <map>
#include <mutex>

namespace holdfast::stores::etcd {

/// Predicts from the locks that a Store object changed last, as it wrote them. After several new locks in a row the
/// next one is predicted to be new, too.
///
/// A prediction saves the look before a change. It is never an answer: the transaction compares everything that was
/// predicted, and changes nothing if any of it is wrong. May be used from any thread.
class Optimistic {
public:
    /// Fills `view` from predictions. False if that is not possible.
    [[nodiscard]] bool predict(BatchView& view, std::span<const Request> requests, const KeyValue& meta);

    /// `record` is the record that was written; `is_quiet`: nobody waits for the lock.
    void remember(const LockName& name, KeyValue record, bool is_quiet);
    void forget(const LockName& name);

    /// The record and the next ticket, as a waiter saw them when it got the lock: enough to hand it over in one round
    /// trip.
    struct HandOver {
        KeyValue record{};
        KeyValue next{};  ///< The head of the queue.
    };
    void expect_release(const LockId& holder, HandOver hand_over);

    /// Counts which of the locks that were read could have been new, and were.
    void learn(const BatchView& view);

private:
    struct KnownLock {
        KeyValue record{};
        bool is_quiet = false;
    };
    /// The size of a generation, and the limit for hand-overs. Smaller than in other stores, since keys are kept with
    /// the values.
    static constexpr std::size_t most_locks = 1024;

    /// The remembered hand-over of a Release.
    [[nodiscard]] std::optional<Assumed> take_hand_over(const Request& request);

    LockCache<KnownLock> locks_{most_locks};
    std::atomic<std::size_t> new_in_a_row_ = 0;
    std::mutex mutex_;
    std::map<LockId, HandOver> hand_overs_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores::etcd
