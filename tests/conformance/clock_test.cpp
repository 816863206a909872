// A lease lasts its ttl in real time, whatever happens to the wall clock of the host.
#include "conformance/store_conformance.hpp"

namespace holdfast::tests {

using namespace std::chrono_literals;

TEST_P(StoreConformance, ALiveLeaseStaysLiveWhenTheWallClockIsStepped) {
    if (!GetParam().withstands_clock_steps) GTEST_SKIP() << GetParam().name << " has no clock but the wall clock";
    for (const auto step : {1h, -1h}) {
        const LockName name = lock(step > 0h ? "forward" : "back");
        const Acquire alice = by_alice(name, 30s);
        granted(alice);
        elapse(29s);
        harness().step_wall(step);
        EXPECT_EQ(inspect(name).state, LockState::held);
        EXPECT_THAT(apply(by_bob(name)), RefusedWith(Errc::lock_conflict));
        EXPECT_THAT(apply(renewal(alice)), Granted());
        // What the renewal wrote counts on the clock as it is now.
        elapse(29s);
        EXPECT_EQ(inspect(name).state, LockState::held);
        elapse(2s);
        EXPECT_EQ(inspect(name).state, LockState::expired);
    }
}

TEST_P(StoreConformance, AnExpiredLeaseStaysExpiredWhenTheWallClockIsStepped) {
    if (!GetParam().withstands_clock_steps) GTEST_SKIP() << GetParam().name << " has no clock but the wall clock";
    for (const auto step : {1h, -1h}) {
        const LockName name = lock(step > 0h ? "forward" : "back");
        const Acquire alice = by_alice(name, 30s);
        const FencingToken token = granted(alice).lock.token;
        elapse(31s);
        harness().step_wall(step);
        EXPECT_EQ(inspect(name).state, LockState::expired);
        EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::lock_expired));
        const Outcome stolen = granted(by_bob(name));
        EXPECT_GT(stolen.lock.token, token) << "also when the clock that is part of it went back";
        EXPECT_TRUE(stolen.stolen_from);
    }
}

TEST_P(StoreConformance, ATicketLastsItsTimeWhenTheWallClockIsStepped) {
    if (!GetParam().withstands_clock_steps) GTEST_SKIP() << GetParam().name << " has no clock but the wall clock";
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    const Acquire bob = queued(by_bob(lock("x")), 10s);
    EXPECT_FALSE(apply(bob));
    harness().step_wall(1h);
    EXPECT_EQ(inspect(lock("x")).waiters, 1U);
    harness().step_wall(-2h);
    elapse(11s);
    EXPECT_EQ(inspect(lock("x")).waiters, 0U);
    granted(release(alice));
    EXPECT_THAT(apply(by_carol(lock("x"))), Granted());
}

TEST_P(StoreConformance, AfterARebootALeaseLastsAtMostOneMoreTtl) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " does not outlive a reboot";
    const Acquire alice = by_alice(lock("x"), 1h);
    granted(alice);
    const FencingToken token = inspect(lock("x")).token;
    // A host without a battery forgets the date, too.
    harness().step_wall(-24h);
    ASSERT_THAT(harness().reboot(), Granted());
    EXPECT_EQ(inspect(lock("x")).state, LockState::held) << "a maintenance hold outlives a reboot";
    EXPECT_THAT(apply(by_bob(lock("x"))), RefusedWith(Errc::lock_conflict));
    elapse(59min);
    EXPECT_THAT(apply(by_bob(lock("x"))), RefusedWith(Errc::lock_conflict));
    elapse(1min);
    EXPECT_GT(granted(by_bob(lock("x"))).lock.token, token);
}

}  // namespace holdfast::tests
