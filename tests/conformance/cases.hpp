#pragma once

#include "holdfast/error.hpp"
#include "support/store_harness.hpp"

#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace holdfast::tests {

/// One store that the suite runs on. How stores differ is said by `Store::properties`, and where that is a matter of
/// the suite alone here, as data, and nowhere in the suite.
struct StoreCase {
    std::string name;  ///< The scheme of its URLs; after a `_`, what is behind it.
    Result<std::unique_ptr<StoreHarness>> (*start)();
    [[nodiscard]] std::string scheme() const { return name.substr(0, name.find('_')); }
    /// A lease lasts its ttl in real time, whatever happens to the host's wall clock. Not looked at in a server: its
    /// clock is not the host's, and the operators of the host do not touch it.
    bool withstands_clock_steps = false;
    /// A daemon is in between: it creates the store when it begins, and is under the clock of the suite whatever a
    /// Store object is opened with.
    bool is_daemon = false;
    int histories = 300;  ///< How many random ones it is compared by; fewer where each step is a round trip.
};

/// Every store of this build.
[[nodiscard]] std::vector<StoreCase> store_cases();

void PrintTo(const StoreCase& store_case, std::ostream* out);

}  // namespace holdfast::tests
