#pragma once

#include "holdfast/store.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

namespace [[gnu::visibility("default")]] holdfast {

/// What was removed so far, or with `only_count` what would be.
struct Pruned {
    std::uint64_t events = 0;
    std::uint64_t locks = 0;    ///< Locks that lost events.
    std::uint64_t visited = 0;  ///< Locks that were looked at.
};

/// Which events go, and how.
struct PruneOptions {
    std::chrono::milliseconds keep = std::chrono::days{90};  ///< Younger events stay, by the store's clock.
    std::string actor{};                                     ///< Told in the audit log. Empty: this process.
    std::string reason{};                                    ///< Told there, too.
    bool only_count = false;                                 ///< Change nothing.
    std::stop_token stop{};                                  ///< Ends it early; what was removed by then stays removed.
    std::function<void(const Pruned&)> on_progress{};        ///< Now and then, on the calling thread.
};

/// Removes old audit events of all locks of a store: whatever is older than `keep`, except for the newest event
/// of each lock. What is left of a lock's log still verifies, and tells of the pruning.
///
/// In small steps, each one request, so that others take and release their locks meanwhile; several may prune one store
/// at once. Blocks until it is done, `stop` is requested, or a step fails.
///
/// Refused with what the store said, `denied` for example. Steps that were done stay done: after an error, also after
/// `outcome_unknown`, it can be called again. Not promised: that nothing older than `keep` is left, because events can
/// become older than that while it works.
[[nodiscard]] Result<Pruned> prune(Store& store, const PruneOptions& options = {});

}  // namespace holdfast
