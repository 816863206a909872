#include "base/attempts.hpp"

#include <gtest/gtest.h>

namespace holdfast::base {
namespace {

using namespace std::chrono_literals;

TEST(AttemptsTest, TheFirstIsMadeAtOnce) {
    const ManualClock clock;
    EXPECT_TRUE(Attempts(clock).wait(0ms));
}

TEST(AttemptsTest, EachThatFailsMakesTheNextWaitLongerButNoLongerThanHalfASecond) {
    ManualClock clock;
    Attempts attempts(clock);
    attempts.failed();
    EXPECT_FALSE(attempts.wait(9ms)) << "at least half of 20 ms";
    clock.advance(20ms);
    EXPECT_TRUE(attempts.wait(0ms));
    for (int i = 0; i < 100; ++i) attempts.failed();
    EXPECT_FALSE(attempts.wait(249ms));
    clock.advance(500ms);
    EXPECT_TRUE(attempts.wait(0ms));
}

TEST(AttemptsTest, OneThatSucceedsEndsThePauses) {
    const ManualClock clock;
    Attempts attempts(clock);
    attempts.failed();
    attempts.succeeded();
    EXPECT_TRUE(attempts.wait(0ms));
}

}  // namespace
}  // namespace holdfast::base
