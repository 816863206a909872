#pragma once

#include "guards/run/signals.hpp"

#include <chrono>
#include <stop_token>

namespace holdfast::cli {

/// Turns SIGINT, SIGTERM and SIGHUP into a stop token for as long as it lives. A second signal ends the
/// process at once, for when a store hangs.
///
/// Made before any other thread, because it blocks the signals for all that come after.
class StopOnSignal {
public:
    [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }
    /// The signal that came before this call, or 0.
    [[nodiscard]] int signal() const { return listener_.heard(); }
    /// What the process exits with then: 128+n.
    [[nodiscard]] int exit_status() const { return 128 + signal(); }

    /// Sleeps; returns early when a signal comes.
    void sleep(std::chrono::milliseconds time) const;

private:
    std::stop_source stop_{};
    guards::run::Signals signals_{guards::run::Signals::Take::requests_to_end};
    mutable guards::run::StopListener listener_{signals_, stop_};
};

}  // namespace holdfast::cli
