#pragma once

#include "stores/common/lock_cache.hpp"
#include "stores/etcd/batch_view.hpp"

#include <atomic>
#include <map>
#include <mutex>

namespace holdfast::stores::etcd {

/// What a Store object predicts from: the locks that it changed last, as it left them. After several new locks in a row
/// the next one is predicted to be new, too.
///
/// A prediction saves the look before a change. It is never an answer: the transaction compares everything that was
/// predicted, and changes nothing if any of it is wrong. May be used from any thread.
class Optimistic {
public:
    /// Fills `view` as if it had been read just now. False if too much is needed or too little is known.
    [[nodiscard]] bool predict(BatchView& view, std::span<const Request> requests, const KeyValue& meta);

    /// `record` is what was written of the lock; `is_quiet` if nobody waits for it.
    void remember(const LockName& name, KeyValue record, bool is_quiet);
    void forget(const LockName& name);

    /// What a waiter saw when the lock was handed over to it: with this it can hand the lock over in one round trip.
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
    /// Of each generation, and of hand-overs. Smaller than elsewhere, since a value is kept with its key.
    static constexpr std::size_t most_locks = 1024;

    /// What a release needs that was expected.
    [[nodiscard]] std::optional<Assumed> take_hand_over(const Request& request);

    LockCache<KnownLock> locks_{most_locks};
    std::atomic<std::size_t> new_in_a_row_ = 0;
    std::mutex mutex_;
    std::map<LockId, HandOver> hand_overs_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores::etcd
