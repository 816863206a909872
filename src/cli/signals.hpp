#pragma once

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

namespace holdfast::cli {

/// Turns SIGINT, SIGTERM and SIGHUP into a stop token for as long as it lives. A second signal ends the
/// process at once, for when a store hangs.
///
/// Made before any other thread, because it blocks the signals for all that come after.
class StopOnSignal {
public:
    StopOnSignal();
    ~StopOnSignal();
    StopOnSignal(const StopOnSignal&) = delete;
    StopOnSignal& operator=(const StopOnSignal&) = delete;

    [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }
    /// The signal that came, or 0.
    [[nodiscard]] int signal() const { return signal_; }
    /// What the process exits with then: 128+n.
    [[nodiscard]] int exit_status() const { return 128 + signal_; }

    /// Sleeps; returns early when a signal comes.
    void sleep(std::chrono::milliseconds time) const;

private:
    void listen(const std::stop_token& end);

    std::stop_source stop_{};
    std::atomic<int> signal_{0};
    std::jthread listener_{};
};

}  // namespace holdfast::cli
