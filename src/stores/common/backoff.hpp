#pragma once

#include "base/jitter.hpp"

#include <algorithm>
#include <chrono>

namespace holdfast::stores {

/// How long to pause after another client was in the way: twice as long after each attempt, and random, so that clients
/// that met once do not meet again.
struct Backoff {
    std::chrono::milliseconds first;
    std::chrono::milliseconds longest;

    /// `attempt` counts from 0.
    [[nodiscard]] std::chrono::milliseconds pause(int attempt) const {
        constexpr int most_doublings = 10;
        const auto most = std::min(first * (1 << std::min(attempt, most_doublings)), longest);
        return base::random_between(std::chrono::milliseconds{1}, most);
    }
};

}  // namespace holdfast::stores
