#pragma once

#include "holdfast/store.hpp"
#include "server/figures/metrics.hpp"
#include "server/observer.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::server {

/// All that `/metrics` shows.
[[nodiscard]] std::span<const MetricRow> metric_table();

/// What is shown of single locks.
struct LockMetricsOptions {
    std::size_t most = 100;              ///< Those that are held longest. None: 0.
    std::vector<std::string> without{};  ///< Locks whose names begin like this are left out.
};

/// What the daemon did, and what the store looks like, in figures. May be used from any thread.
class DaemonMetrics final : public ServerObserver {
public:
    DaemonMetrics(std::string version, LockMetricsOptions options);

    void answered(std::string_view method, std::string_view route, int status, std::chrono::microseconds time) override;
    void applied(std::span<const Request> requests, const Result<std::vector<Reply>>& replies,
                 std::chrono::microseconds time) override;
    void queued(std::size_t waiting) override;
    void refused_at_queue() override;
    void connections(std::size_t open) override;
    void streams(std::size_t open) override;
    void waiters(std::size_t held) override;

    /// An event of the store was read, once. Not `happened`, which is called only while somebody follows the events.
    void read_event(const AuditEvent& event);

    /// A look at all locks begins; `looked_at` for each page of it; and it is over.
    void look_begins();
    void looked_at(std::span<const LockStatus> locks, Instant host_time);
    void look_ends(const StoreInfo& store, std::chrono::microseconds time);
    /// The store could not be looked at.
    void look_failed(const Error& error);

    void ended(std::size_t leases);
    void pruned(std::uint64_t events);

    [[nodiscard]] std::string text() const { return metrics_.text(); }

private:
    /// A lock that is held, and shown by name.
    struct Shown {
        std::string name{};
        double held_seconds = 0;
        double margin_seconds = 0;
    };
    /// Since when the first waiter of a lock has not got it.
    struct Queue {
        FencingToken token{};
        Instant since{};
    };
    /// What one look has seen so far.
    struct Look {
        std::size_t held = 0;
        std::size_t expired = 0;
        std::size_t unreadable = 0;
        std::uint64_t waiters = 0;
        double longest_queue = 0;
        double least_margin = 1;
        std::vector<Shown> shown{};
        std::map<LockName, Queue> queues{};
    };

    void see_hold(const AuditEvent& event);
    /// Whether the end of its lease was an event of its own, so that the steal is no second loss.
    [[nodiscard]] bool was_announced(const LockName& name);
    void see(const LockStatus& lock);
    [[nodiscard]] bool is_shown(const LockName& name) const;

    const LockMetricsOptions options_;
    Metrics metrics_;
    std::mutex mutex_;
    /// Guarded by mutex_.
    std::map<LockName, Instant> began_{};  ///< When leases were granted whose end was not read yet.
    std::set<LockName> announced_{};       ///< Locks whose lease was announced as expired, until the next grant.
    Look look_{};
    std::map<LockName, Queue> queues_{};  ///< Of the last look.
};

}  // namespace holdfast::server
