#pragma once

#include "holdfast/clock.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace holdfast::client {

/// Functions that are to be called at a time. For one thread at a time.
class Alarms {
public:
    using Id = std::uint64_t;

    Id set(Boottime at, std::function<void()> ring) {
        times_.emplace(++last_id_, at);
        alarms_.emplace(std::pair(at, last_id_), std::move(ring));
        return last_id_;
    }
    /// Without effect once it has rung.
    void cancel(Id id) {
        const auto found = times_.find(id);
        if (found == times_.end()) return;
        alarms_.erase({found->second, id});
        times_.erase(found);
    }

    [[nodiscard]] Boottime next() const { return alarms_.empty() ? Boottime::max() : alarms_.begin()->first.first; }
    /// Those that are due, in the order of their times.
    [[nodiscard]] std::vector<std::function<void()>> take_due(Boottime now) {
        std::vector<std::function<void()>> due;
        while (next() <= now && !alarms_.empty()) {
            due.push_back(std::move(alarms_.begin()->second));
            times_.erase(alarms_.begin()->first.second);
            alarms_.erase(alarms_.begin());
        }
        return due;
    }

private:
    Id last_id_ = 0;
    std::map<std::pair<Boottime, Id>, std::function<void()>> alarms_{};
    std::unordered_map<Id, Boottime> times_{};  ///< Of each that has not rung.
};

}  // namespace holdfast::client
