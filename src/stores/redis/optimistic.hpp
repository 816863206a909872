#pragma once

#include "stores/common/optimistic.hpp"
#include "stores/redis/codec.hpp"

/// Changes that are decided before anything is read. The script compares the versions and the clock, and writes nothing
/// unless the prediction was right; its answer is a look then, so a wrong prediction costs nothing.
namespace holdfast::stores::redis {

/// A lock as this process left it, or found it when the lock was handed over.
struct KnownLock {
    std::string value{};  ///< The value of its key, which changes with the queue, too.
    LockView view;        ///< Its record, and at most the head of its queue.
};

/// A lock that is not in the cache is predicted to be new.
[[nodiscard]] KnownLock predict(const LockCache<KnownLock>& locks, const LockName& name);

/// True if a decision from predictions may be sent: it does not depend on the end of a lease or ticket, and nothing was
/// refused.
[[nodiscard]] bool may_send(std::span<const KnownLock> predictions, std::span<const holdfast::Reply> replies,
                            std::span<const Change> changes, Instant now);

}  // namespace holdfast::stores::redis
