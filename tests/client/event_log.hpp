#pragma once

#include "holdfast/hold.hpp"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

namespace holdfast::tests {

/// Collects what an observer hears, and lets a test wait for it.
class EventLog {
public:
    std::function<void(const HoldEvent&)> observer() {
        return [this](const HoldEvent& event) {
            const std::scoped_lock lock(mutex_);
            events_.push_back(event);
            came_.notify_all();
        };
    }

    /// Returns when the `count`-th event of `kind` has come.
    void await(HoldEventKind kind, int count = 1) {
        std::unique_lock lock(mutex_);
        came_.wait(lock, [&] { return std::ranges::count(events_, kind, &HoldEvent::kind) >= count; });
    }

    [[nodiscard]] std::vector<HoldEventKind> kinds() const {
        const std::scoped_lock lock(mutex_);
        std::vector<HoldEventKind> kinds;
        for (const HoldEvent& event : events_) kinds.push_back(event.kind);
        return kinds;
    }

private:
    mutable std::mutex mutex_;
    std::condition_variable came_;
    std::vector<HoldEvent> events_;  ///< Guarded by mutex_.
};

}  // namespace holdfast::tests
