#pragma once

#include "stores/etcd/read.hpp"

#include <map>
#include <mutex>

namespace holdfast::stores::etcd {

/// What waiters knew when they took their places, for when they begin to wait. May be used from any thread.
class Foreseen {
public:
    void remember(const LockId& waiter, Outlook outlook);
    /// Absent if it was not just now: its times count from then.
    [[nodiscard]] std::optional<Outlook> take(const LockId& waiter);

private:
    struct Known {
        Outlook outlook{};
        Boottime since{};
    };

    std::mutex mutex_;
    std::map<LockId, Known> waiters_{};  ///< Guarded by mutex_.
};

}  // namespace holdfast::stores::etcd
