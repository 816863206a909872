#pragma once

#include "holdfast/store.hpp"

#include <chrono>
#include <cstddef>

namespace holdfast::tests {

/// What a crowd of waiters costs that has no thread for each of them.
struct CrowdCost {
    int grants = 0;
    int wake_ups = 0;              ///< How often a watch fired while the lock was handed on.
    std::ptrdiff_t threads = 0;    ///< How many more there are than before anybody watched.
    std::ptrdiff_t memory_kb = 0;  ///< By how much the resident memory of the process grew, with tickets and watches.
    std::chrono::microseconds for_all{0};    ///< From the first of them in line to the last one asleep.
    std::chrono::microseconds for_grant{0};  ///< From a release until the next waiter knows, on average.
};

/// Puts `waiters` in the queue of one lock of `store`, subscribes for each, and lets the lock go through the first
/// `grants` of them. No lease and no ticket ends meanwhile. Throws if the store refuses what it must not.
[[nodiscard]] CrowdCost cost_of_crowd(Store& store, int waiters, int grants);

}  // namespace holdfast::tests
