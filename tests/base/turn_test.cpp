#include "base/turn.hpp"

#include <gtest/gtest.h>

namespace holdfast::base {
namespace {

using namespace std::chrono_literals;

constexpr Instant now{1'700'000'000s};

Lease lasting(std::chrono::milliseconds left, std::chrono::milliseconds ttl) {
    Lease lease;
    lease.expires_at = now + left;
    lease.ttl = ttl;
    return lease;
}

TEST(SleepInLine, EndsForTheFirstWaiterAtAFreeLock) {
    EXPECT_FALSE(sleep_in_line(Standing::first, std::nullopt, now));
    EXPECT_FALSE(sleep_in_line(Standing::first, lasting(0ms, 30s), now));
}

TEST(SleepInLine, EndsForAWaiterWithoutAPlace) {
    EXPECT_FALSE(sleep_in_line(Standing::absent, lasting(10s, 30s), now));
    EXPECT_FALSE(sleep_in_line(Standing::absent, std::nullopt, now));
}

TEST(SleepInLine, IsAtMostASecondAndAQuarterOfTheTtl) {
    for (const Standing standing : {Standing::first, Standing::behind}) {
        EXPECT_EQ(sleep_in_line(standing, lasting(30s, 30s), now), 1s);
        EXPECT_EQ(sleep_in_line(standing, lasting(2s, 2s), now), 500ms);
    }
    EXPECT_LE(sleep_in_line(Standing::behind, std::nullopt, now), 1s);
}

TEST(SleepInLine, EndsWithTheLeaseForTheFirstWaiterOnly) {
    EXPECT_EQ(sleep_in_line(Standing::first, lasting(7ms, 30s), now), 7ms);
    EXPECT_EQ(sleep_in_line(Standing::behind, lasting(7ms, 30s), now), 1s);
}

}  // namespace
}  // namespace holdfast::base
