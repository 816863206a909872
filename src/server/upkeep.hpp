#pragma once

#include "holdfast/store.hpp"
#include "server/figures/daemon_metrics.hpp"
#include "server/log.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace holdfast::server {

/// When the daemon looks after its store.
struct UpkeepOptions {
    std::chrono::milliseconds sweep_every{5'000};  ///< Zero: never.
    /// Audit events that are older are removed. Zero: none are.
    std::chrono::milliseconds keep = std::chrono::days{90};
    std::chrono::milliseconds prune_after = std::chrono::minutes{5};  ///< How long after the start it is pruned first.
    std::chrono::milliseconds prune_every = std::chrono::days{1};
    std::string actor{};  ///< Of the pruning, in the audit log.
};

/// What a daemon does by itself: ends leases that ran out, reads events and the state of the locks for the figures, and
/// removes old events. Two threads, so that a long pruning does not hold up a sweep. Any number of daemons may do this
/// on one store.
class Upkeep {
public:
    /// Begins. All that is referred to must outlive it.
    Upkeep(Store& store, DaemonMetrics& metrics, Log& log, UpkeepOptions options);
    Upkeep(const Upkeep&) = delete;
    Upkeep& operator=(const Upkeep&) = delete;
    /// Waits for the step under way.
    ~Upkeep();

private:
    void sweep_until(const std::stop_token& stop);
    void prune_until(const std::stop_token& stop);
    void prune_once(const std::stop_token& stop);
    /// Less than the whole time if `stop` is requested.
    void pause(std::chrono::microseconds time, const std::stop_token& stop);

    Store& store_;
    DaemonMetrics& metrics_;
    Log& log_;
    const UpkeepOptions options_;
    std::mutex mutex_;
    std::condition_variable_any stopped_;
    std::jthread sweeper_;
    std::jthread pruner_;
};

}  // namespace holdfast::server
