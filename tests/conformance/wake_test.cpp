// Waiting for a change ends with the change. The clock of these tests stands still, so a wait that
// missed it would never end by itself: the watchdog then moves the clock past the deadline and complains.
#include "conformance/store_conformance.hpp"
#include "support/watching_crowd.hpp"

#include <atomic>
#include <future>
#include <thread>

namespace holdfast::tests {

using namespace std::chrono_literals;

namespace {

/// Waits on `store` in a thread, makes the change, and says whether the wait ended because of it.
template <class Change>
bool wakes(StoreHarness& harness, Store& store, const Watch& watch, Change change) {
    std::promise<void> waiting;
    auto woken = std::async(std::launch::async, [&] {
        waiting.set_value();
        return store.wait_for_change(watch, Deadline::in(harness.clock(), 1h));
    });
    waiting.get_future().wait();
    change();
    const bool in_time = woken.wait_for(60s) == std::future_status::ready;
    if (!in_time) harness.elapse(2h);
    EXPECT_THAT(woken.get(), Granted());
    return in_time;
}

}  // namespace

TEST_P(StoreConformance, AWaitEndsWhenTheLockIsReleased) {
    const Acquire alice = by_alice(lock("x"));
    const std::uint64_t seen = granted(alice).lock.seq;
    EXPECT_TRUE(wakes(harness(), store(), {.name = lock("x"), .seen_seq = seen}, [&] { granted(release(alice)); }));
    EXPECT_GT(inspect(lock("x")).seq, seen);
}

TEST_P(StoreConformance, AWaitEndsWhenAnotherStoreObjectReleasesTheLock) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " belongs to one Store object";
    const auto other = must(harness().open_another());
    for (int round = 0; round < 5; ++round) {
        const Acquire alice = by_alice(lock("x"));
        const std::uint64_t seen = granted(alice).lock.seq;
        EXPECT_TRUE(wakes(harness(), store(), {.name = lock("x"), .seen_seq = seen},
                          [&] { must(other->apply_one(release(alice), soon())); }));
    }
}

TEST_P(StoreConformance, AWaitForAChangeThatHasHappenedEndsAtOnce) {
    const Acquire alice = by_alice(lock("x"));
    const std::uint64_t seen = granted(alice).lock.seq;
    granted(renewal(alice));
    EXPECT_TRUE(wakes(harness(), store(), {.name = lock("x"), .seen_seq = seen}, [] {}));
}

TEST_P(StoreConformance, AWaitOnAStoreThatIsNotThereYetEndsWithItsFirstUse) {
    EXPECT_TRUE(wakes(harness(), store(), {.name = lock("x")}, [&] { granted(by_alice(lock("x"))); }));
}

TEST_P(StoreConformance, AWaitInLineEndsWhenTheLockIsReleased) {
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    const Acquire bob = queued(by_bob(lock("x")), 1h);
    EXPECT_FALSE(apply(bob));
    const Watch watch{.name = lock("x"), .seen_seq = inspect(lock("x")).seq, .ticket = bob.as.lock_id};
    EXPECT_TRUE(wakes(harness(), store(), watch, [&] { granted(release(alice)); }));
    EXPECT_THAT(apply(bob), Granted());
}

TEST_P(StoreConformance, AWaiterIsToldThatTheLockIsItsOwnAndCountsFromBeforeItLooked) {
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    const Acquire bob = queued(by_bob(lock("x"), 1h), 1h);
    EXPECT_FALSE(apply(bob));
    granted(release(alice));
    const Boottime before = harness().clock().boottime();
    const Watch watch{.name = lock("x"), .seen_seq = 1, .ticket = bob.as.lock_id};
    const auto handed_on = must(store().wait_for_change(watch, Deadline::in(harness().clock(), 1h)));
    ASSERT_EQ(handed_on.has_value(), properties().shows_only_durable);
    if (!handed_on) return;
    EXPECT_EQ(handed_on->lock.lease->lock_id, bob.as.lock_id);
    EXPECT_EQ(handed_on->lock.token, inspect(lock("x")).token);
    EXPECT_GE(handed_on->seen_from, before);
    EXPECT_LE(handed_on->seen_from, harness().clock().boottime());
}

TEST_P(StoreConformance, AWaiterIsNotToldThatALockOfSomebodyElseIsItsOwn) {
    const Acquire alice = by_alice(lock("x"), 1s);
    granted(alice);
    const Acquire bob = queued(by_bob(lock("x")), 1h);
    EXPECT_FALSE(apply(bob));
    elapse(1s);
    const Watch watch{.name = lock("x"), .seen_seq = 1, .ticket = bob.as.lock_id};
    EXPECT_FALSE(must(store().wait_for_change(watch, Deadline::in(harness().clock(), 1h))));
}

// Nobody rings when a lease runs out, or when the releasing process was killed: the store looks by itself.
TEST_P(StoreConformance, AWaitInLineEndsWhenTheLeaseRunsOut) {
    granted(by_alice(lock("x"), 1s));
    const Acquire bob = queued(by_bob(lock("x")), 1h);
    EXPECT_FALSE(apply(bob));
    const Watch watch{.name = lock("x"), .seen_seq = inspect(lock("x")).seq, .ticket = bob.as.lock_id};
    EXPECT_TRUE(wakes(harness(), store(), watch, [&] { elapse(1s); }));
    EXPECT_THAT(apply(bob), Granted());
}

TEST_P(StoreConformance, AWaitInLineDoesNotEndWhenTheHolderRenews) {
    const Acquire alice = by_alice(lock("x"), 24h);
    granted(alice);
    const Acquire bob = queued(by_bob(lock("x")), 24h);
    EXPECT_FALSE(apply(bob));
    const Watch watch{.name = lock("x"), .seen_seq = inspect(lock("x")).seq, .ticket = bob.as.lock_id};
    std::atomic<bool> released = false;
    auto woken = std::async(std::launch::async, [&] {
        EXPECT_THAT(store().wait_for_change(watch, Deadline::in(harness().clock(), 1h)), Granted());
        return released.load();
    });
    for (int i = 0; i < 20; ++i) granted(renewal(alice));
    released = true;
    granted(release(alice));
    EXPECT_TRUE(woken.get()) << "woken although somebody else holds the lock";
}

TEST_P(StoreConformance, ManyWaitersNeedOneThreadAndAtMostTwoWakeUpsForEachGrant) {
    const CrowdCost cost = cost_of_crowd(store(), 200, 50);
    // The daemon is in this process, and has one, too.
    EXPECT_LE(cost.threads, GetParam().is_daemon ? 2 : 1);
    EXPECT_LE(cost.wake_ups, 2 * cost.grants);
}

TEST_P(StoreConformance, ASubscriptionFiresWhenTheLockIsHandedOnAndNotAfterItHasEnded) {
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    const Acquire bob = queued(by_bob(lock("x"), 1h), 1h);
    EXPECT_FALSE(apply(bob));
    const Watch watch{.name = lock("x"), .seen_seq = 1, .ticket = bob.as.lock_id};
    auto ended = must(store().subscribe(watch, [](const auto&) { ADD_FAILURE() << "called although it has ended"; }));
    ended.reset();
    std::promise<Result<std::optional<HandedOn>>> fired;
    const auto subscription = must(store().subscribe(watch, [&](auto result) { fired.set_value(std::move(result)); }));
    granted(release(alice));
    const auto handed_on = must(fired.get_future().get());
    ASSERT_EQ(handed_on.has_value(), store().properties().shows_only_durable);
    if (!handed_on) return;
    EXPECT_EQ(handed_on->lock.lease->lock_id, bob.as.lock_id);
}

TEST_P(StoreConformance, AWaitEndsWithItsDeadlineWhenNothingHappens) {
    const std::uint64_t seen = granted(by_alice(lock("x"), 24h)).lock.seq;
    const Deadline deadline = Deadline::in(harness().clock(), 1s);
    const std::jthread time([&] { elapse(2s); });
    EXPECT_THAT(store().wait_for_change({.name = lock("x"), .seen_seq = seen}, deadline), Granted());
    EXPECT_EQ(inspect(lock("x")).seq, seen);
}

}  // namespace holdfast::tests
