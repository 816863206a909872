#pragma once

#include "stores/etcd/batch_view.hpp"

#include <map>
#include <mutex>

namespace holdfast::stores::etcd {

/// The locks that this Store object changed last, as it left them: with nobody in their queues.
///
/// The next step on such a lock need not read before it writes. That is safe because the transaction compares
/// everything that was remembered, and that the queue is still empty; if any of it is no longer so, it
/// changes nothing and reads instead.
class Recent {
public:
    explicit Recent(const Clock& clock) : clock_(clock) {}

    /// Fills `view` as if it had been read just now. Empty if too much is needed or too little is known.
    [[nodiscard]] std::optional<Moment> recall(BatchView& view);

    /// `record` is what was written of the lock of `view`, whose queue is empty; `moment` is that of the answer to what
    /// was sent at `sent_at`.
    void remember(const BatchView& view, KeyValue record, const Moment& moment, Boottime sent_at);

    void forget(const LockName& name);

private:
    struct Lock {
        KeyValue meta{};
        KeyValue record{};
        Moment moment{};
        Boottime sent_at{};
        Boottime heard_at{};
    };

    const Clock& clock_;
    std::mutex mutex_;
    std::map<LockName, Lock> locks_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores::etcd
