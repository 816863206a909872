#pragma once

#include "holdfast/error.hpp"
#include "support/store_harness.hpp"

#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace holdfast::tests {

/// One store that the suite runs on. How stores differ is said here, as data, and nowhere in the suite.
struct StoreCase {
    std::string name;  ///< The scheme of its URLs.
    Result<std::unique_ptr<StoreHarness>> (*start)();
    bool shared;           ///< Several Store objects, and so several processes, work on the same locks.
    bool survives_reopen;  ///< The locks outlive the Store object.
    bool corruptible;      ///< There are stored bytes that can go bad.
    /// A lease lasts its ttl in real time, whatever happens to the host's wall clock.
    bool withstands_clock_steps;
    /// What a waiter sees is durable, so that it need not ask for a lock that was handed on to it.
    bool vouches_for_sights = true;
    int histories = 300;  ///< How many random ones it is compared by; fewer where each step is a round trip.
};

/// Every store of this build.
[[nodiscard]] std::vector<StoreCase> store_cases();

void PrintTo(const StoreCase& store_case, std::ostream* out);

}  // namespace holdfast::tests
