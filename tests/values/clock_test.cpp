#include "holdfast/clock.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

TEST(Rfc3339Test, WritesUtcWithMilliseconds) {
    EXPECT_EQ(to_rfc3339(Instant{0ms}), "1970-01-01T00:00:00.000Z");
    EXPECT_EQ(to_rfc3339(Instant{1'700'000'000'042ms}), "2023-11-14T22:13:20.042Z");
    EXPECT_EQ(to_rfc3339(Instant{951'782'400'000ms}), "2000-02-29T00:00:00.000Z");
    EXPECT_EQ(to_rfc3339(Instant{253'402'300'799'999ms}), "9999-12-31T23:59:59.999Z");
    EXPECT_EQ(to_rfc3339(Instant{-1ms}), "1969-12-31T23:59:59.999Z");
}

TEST(ManualClockTest, MovesOnlyWhenTold) {
    const ManualClock clock(Instant{5s});
    EXPECT_EQ(clock.wall(), Instant{5s});
    EXPECT_EQ(clock.wall(), Instant{5s});
    EXPECT_EQ(clock.boottime(), Boottime{0s});
}

TEST(ManualClockTest, TimePassesOnBothClocksAndAStepMovesTheWallAlone) {
    ManualClock clock(Instant{5s});
    clock.advance(2s);
    EXPECT_EQ(clock.wall(), Instant{7s});
    EXPECT_EQ(clock.boottime(), Boottime{2s});
    clock.step_wall(-3s);
    EXPECT_EQ(clock.wall(), Instant{4s});
    EXPECT_EQ(clock.boottime(), Boottime{2s});
}

TEST(ManualClockTest, ARebootBeginsANewBootTime) {
    ManualClock clock;
    const Instant wall = clock.wall();
    const std::string boot = clock.boot_id();
    clock.advance(1h);
    EXPECT_EQ(clock.boot_id(), boot);
    clock.reboot();
    EXPECT_NE(clock.boot_id(), boot);
    EXPECT_EQ(clock.boottime(), Boottime{0s});
    EXPECT_EQ(clock.wall(), wall + 1h);
}

TEST(HostClockTest, KnowsItsBootAndNeverGoesBack) {
    const Clock& clock = host_clock();
    EXPECT_EQ(clock.boot_id().size(), 36U);
    EXPECT_GT(clock.wall(), Instant{std::chrono::sys_days{std::chrono::year{2023} / 1 / 1}});
    const Boottime before = clock.boottime();
    EXPECT_GT(before, Boottime{0s});
    EXPECT_GE(clock.boottime(), before);
}

TEST(DeadlineTest, PassesAtItsInstant) {
    ManualClock clock;
    const Deadline deadline = Deadline::in(clock, 10s);
    EXPECT_FALSE(deadline.passed(clock));
    EXPECT_EQ(deadline.remaining(clock), 10s);
    clock.advance(10s - 1ms);
    EXPECT_FALSE(deadline.passed(clock));
    EXPECT_EQ(deadline.remaining(clock), 1ms);
    clock.advance(1ms);
    EXPECT_TRUE(deadline.passed(clock));
    clock.advance(1h);
    EXPECT_EQ(deadline.remaining(clock), 0ms);
}

TEST(DeadlineTest, IsNotMovedByTheWallClock) {
    ManualClock clock;
    const Deadline deadline = Deadline::in(clock, 10s);
    clock.step_wall(24h);
    EXPECT_FALSE(deadline.passed(clock));
}

TEST(DeadlineTest, CanBeNever) {
    ManualClock clock;
    clock.advance(1h);
    EXPECT_FALSE(Deadline::never().passed(clock));
    EXPECT_EQ(Deadline::in(clock, milliseconds::max()).at, Deadline::never().at);
    EXPECT_EQ(Deadline{}.at, Deadline::never().at);
}

TEST(DeadlineTest, OfNoTimeHasPassedAtOnce) {
    ManualClock clock;
    EXPECT_TRUE(Deadline::in(clock, 0ms).passed(clock));
    EXPECT_TRUE(Deadline::in(clock, -5s).passed(clock));
    EXPECT_EQ(Deadline::in(clock, -5s).remaining(clock), 0ms);
}

}  // namespace
}  // namespace holdfast
