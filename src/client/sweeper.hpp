#pragma once

#include "holdfast/store.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <stop_token>
#include <vector>

namespace holdfast::client {

/// What one sweep has seen and done.
struct Swept {
    std::size_t locks = 0;  ///< With a lease, or unreadable.
    std::size_t ended = 0;  ///< Leases that were announced as expired by this sweep.
};

/// Ends leases that ran out and that nobody asks for: `Expire` for each, so that the event is written once, whoever
/// else sweeps the same store, and the lock goes to its first waiter.
///
/// Not for several threads at once.
class Sweeper {
public:
    explicit Sweeper(Store& store) : store_(store) {}

    /// Sees every lock that is not free, some at a time, as it was read.
    using Look = std::function<void(std::span<const LockStatus> locks)>;

    /// Once over all locks, in small steps; blocks until it is done or `stop` is requested. A lock that cannot be read
    /// stays as it is, and does not keep others from being swept. After an error the next sweep does what is left.
    [[nodiscard]] Result<Swept> sweep(const std::stop_token& stop, const Look& look = {});

private:
    [[nodiscard]] Deadline soon() const;
    [[nodiscard]] Result<void> end(const std::vector<Request>& requests, Swept& swept);

    Store& store_;
    /// Leases that were announced. A record keeps its lease until the next grant, and would be announced again and
    /// again.
    std::map<LockName, LockId> ended_{};
    std::map<LockName, LockId> still_there_{};  ///< Those of them that this sweep has seen.
};

}  // namespace holdfast::client
