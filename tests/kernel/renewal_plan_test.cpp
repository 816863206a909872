// When a holder renews, gives a try up and tries again: pure arithmetic, for leases of all lengths.

#include "kernel/renewal_plan.hpp"

#include <gtest/gtest.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

TEST(RenewalPlan, ASecondTryFitsInBeforeTheWorkIsToldToStopAlthoughTheFirstNeverReturns) {
    for (const milliseconds ttl : {400ms, 1500ms, 5000ms, 30'000ms, 3'600'000ms})
        for (const milliseconds time_to_stop : {milliseconds{0}, ttl / 6, ttl / 3, ttl / 2}) {
            const milliseconds stop_after = ttl - kernel::margin_of(ttl) - time_to_stop;
            const kernel::RenewalPlan plan{ttl, std::min(ttl / 3, stop_after / 2), Boottime{}, time_to_stop};
            const Boottime first = plan.next_renewal();
            const Boottime given_up = first + plan.call_timeout(first);
            const Boottime second = plan.next_attempt(given_up);
            EXPECT_LT(second, plan.deadline() - time_to_stop) << ttl.count() << " ms, " << time_to_stop.count();
        }
}

TEST(RenewalPlan, TriesAreFartherApartTheMoreTimeIsLeft) {
    const kernel::RenewalPlan plan{30s, 10s, Boottime{}, 5s};
    const auto pause = [&](milliseconds at) { return plan.next_attempt(Boottime{at}) - Boottime{at}; };
    EXPECT_GT(pause(10s), pause(15s));
    EXPECT_GT(pause(15s), pause(21s));
    EXPECT_GE(pause(21'999ms), 20ms) << "a store that is down is hammered";
    EXPECT_GT(pause(22s), 500ms) << "a store that is down is hammered while the work stops";
}

}  // namespace
}  // namespace holdfast::tests
