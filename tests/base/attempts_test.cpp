#include "base/attempts.hpp"

#include <gtest/gtest.h>

namespace holdfast::base {
namespace {

using namespace std::chrono_literals;

const Error gone{Errc::store_unavailable, "nobody listens"};

TEST(AttemptsTest, TheFirstIsMadeAtOnce) {
    const ManualClock clock;
    EXPECT_TRUE(Attempts(clock).wait(0ms));
}

TEST(AttemptsTest, EachThatFailsMakesTheNextWaitLongerButNoLongerThanHalfASecond) {
    ManualClock clock;
    Attempts attempts(clock);
    attempts.failed(gone);
    EXPECT_FALSE(attempts.wait(9ms)) << "at least half of 20 ms";
    clock.advance(20ms);
    EXPECT_TRUE(attempts.wait(0ms));
    for (int i = 0; i < 100; ++i) attempts.failed(gone);
    EXPECT_FALSE(attempts.wait(249ms));
    clock.advance(500ms);
    EXPECT_TRUE(attempts.wait(0ms));
}

TEST(AttemptsTest, OneThatSucceedsEndsThePauses) {
    const ManualClock clock;
    Attempts attempts(clock);
    attempts.failed(gone);
    attempts.succeeded();
    EXPECT_TRUE(attempts.wait(0ms));
}

TEST(AttemptsTest, ACallerWithoutTimeForThePauseGetsTheLastError) {
    const ManualClock clock;
    Attempts attempts(clock);
    attempts.failed({Errc::denied, "the password is wrong"});
    const auto refused = attempts.wait(0ms);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::denied);
    EXPECT_NE(refused.error().message.find("the password is wrong"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::base
