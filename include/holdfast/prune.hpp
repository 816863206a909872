#pragma once

#include "holdfast/store.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

namespace holdfast {

/// What was removed so far.
struct Pruned {
    std::uint64_t events = 0;
    std::uint64_t locks = 0;    ///< Of so many.
    std::uint64_t visited = 0;  ///< Locks that were looked at.
};

struct PruneOptions {
    std::chrono::milliseconds keep = std::chrono::days{90};  ///< Younger events stay, by the store's clock.
    std::string actor{};                                     ///< Told in the audit log. Empty: this process.
    std::string reason{};
    bool only_count = false;                           ///< Change nothing.
    const Clock* clock = &host_clock();                ///< The store's own, where that is not the host's. For tests.
    std::stop_token stop{};                            ///< Ends it early; what was removed by then stays removed.
    std::function<void(const Pruned&)> on_progress{};  ///< Now and then, on the calling thread.
};

/// Removes old audit events of all locks of a store: whatever is older than `keep`, except for the newest event
/// of each lock. What is left of a lock's log still verifies, and tells of the pruning.
///
/// In small steps, so that others take and release their locks meanwhile. After an error it can be called again.
[[nodiscard]] Result<Pruned> prune(Store& store, const PruneOptions& options = {});

}  // namespace holdfast
