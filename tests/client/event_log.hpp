#pragma once

#include "holdfast/hold.hpp"
#include "support/time_limit.hpp"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
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

    /// Returns when the `count`-th event of `kind` has come. Throws when it does not.
    void await(HoldEventKind kind, int count = 1) {
        std::unique_lock lock(mutex_);
        if (!came_.wait_for(lock, time_limit,
                            [&] { return std::ranges::count(events_, kind, &HoldEvent::kind) >= count; }))
            throw std::runtime_error("waited too long for " + std::string(name_of(kind)));
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
