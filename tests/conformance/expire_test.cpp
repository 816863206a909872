// Anybody may announce that a lease ran out: once, not before a steal could take it, and for the first waiter's good.
#include "conformance/store_conformance.hpp"

#include <future>
#include <latch>
#include <thread>

namespace holdfast::tests {

using namespace std::chrono_literals;

TEST_P(StoreConformance, ALeaseThatRanOutIsAnnouncedOnceAndKeptForTheNextGrant) {
    const Acquire alice = by_alice(lock("x"), 1s);
    const Outcome before = granted(alice);
    elapse(1s);

    const Outcome announced = granted(expiry(alice));

    EXPECT_EQ(announced.lock.state, LockState::expired);
    EXPECT_EQ(announced.lock.lease, before.lock.lease);
    EXPECT_EQ(announced.lock.token, before.lock.token);
    EXPECT_EQ(inspect(lock("x")), announced.lock);
    EXPECT_THAT(apply(expiry(alice)), RefusedWith(Errc::lock_not_held)) << "of several that sweep, one announces it";
    EXPECT_EQ(kinds(lock("x")), (std::vector{EventKind::acquired, EventKind::expired}));
    EXPECT_EQ(history(lock("x")).back().holder.text, "alice");
    const Outcome stolen = granted(by_bob(lock("x")));
    ASSERT_TRUE(stolen.stolen_from);
    EXPECT_EQ(stolen.stolen_from->lock_id, alice.as.lock_id);
    EXPECT_EQ(stolen.stolen_from->expired_at, before.lock.lease->expires_at);
    EXPECT_GT(stolen.lock.token, before.lock.token);
    EXPECT_EQ(kinds(lock("x")).back(), EventKind::stolen);
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, ALiveLeaseIsNotAnnouncedAsRunOut) {
    const Acquire alice = by_alice(lock("x"), 1s);
    granted(alice);
    elapse(999ms);
    const Reply refused = apply(expiry(alice));
    ASSERT_THAT(refused, RefusedWith(Errc::lock_conflict));
    ASSERT_TRUE(refused.error().holder);
    EXPECT_EQ(refused.error().holder->lease->holder.text, "alice");
    EXPECT_THAT(apply(renewal(alice)), Granted());
    EXPECT_EQ(kinds(lock("x")), (std::vector{EventKind::acquired, EventKind::renewed}));
}

TEST_P(StoreConformance, NoLeaseIsAnnouncedButTheOneThatWasSeen) {
    const Acquire alice = by_alice(lock("x"), 1s);
    EXPECT_THAT(apply(expiry(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(inspect(lock("x")).seq, 0U) << "a lock that was never used stays so";
    granted(alice);
    granted(release(alice));
    EXPECT_THAT(apply(expiry(alice)), RefusedWith(Errc::lock_not_held));
    const Acquire bob = by_bob(lock("x"), 1s);
    granted(bob);
    elapse(1s);
    EXPECT_THAT(apply(expiry(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(expiry(bob)), Granted());
}

TEST_P(StoreConformance, AnAnnouncedLeaseIsOverForItsHolder) {
    const Acquire alice = by_alice(lock("x"), 1s);
    const FencingToken token = granted(alice).lock.token;
    elapse(1s);
    granted(expiry(alice));
    if (properties().is_shared) {
        ASSERT_THAT(harness().reopen(), Granted());
    }
    EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::lock_expired));
    EXPECT_THAT(apply(renewal(alice, Revive::yes)), RefusedWith(Errc::lock_expired));
    EXPECT_THAT(apply(check(lock("x"), token)), RefusedWith(Errc::lock_expired));
    EXPECT_THAT(apply(release(alice)), RefusedWith(Errc::lock_expired));
    EXPECT_THAT(apply(alice), RefusedWith(Errc::lock_expired));
    EXPECT_THAT(apply(cancel(alice)), Granted()) << "a cancel is never refused";
    EXPECT_EQ(inspect(lock("x")).seq, 2U);
}

TEST_P(StoreConformance, AnAnnouncedLeaseIsHandedOnToTheFirstWaiter) {
    const Acquire alice = by_alice(lock("x"), 1s);
    const FencingToken token = granted(alice).lock.token;
    const Acquire bob = queued(by_bob(lock("x")), 1h);
    EXPECT_FALSE(apply(bob));
    EXPECT_FALSE(apply(queued(by_carol(lock("x")), 1h)));
    elapse(1s);

    const Outcome announced = granted(expiry(alice));

    EXPECT_EQ(announced.lock.state, LockState::held);
    EXPECT_EQ(announced.lock.lease->lock_id, bob.as.lock_id);
    EXPECT_GT(announced.lock.token, token);
    EXPECT_EQ(announced.lock.waiters, 1U);
    EXPECT_EQ(inspect(lock("x")), announced.lock);
    EXPECT_EQ(kinds(lock("x")), (std::vector{EventKind::acquired, EventKind::expired, EventKind::acquired}));
    const auto details = history(lock("x")).back().details;
    EXPECT_EQ(details.at("from_lock_id"), alice.as.lock_id.text());
    EXPECT_EQ(details.at("from_token"), std::to_string(token.value));
    EXPECT_THAT(apply(expiry(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(release(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(renewal(bob)), Granted());
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, AWaiterWithExclusionsTakesAnAnnouncedLeaseItself) {
    const Acquire alice = by_alice(lock("x"), 1s);
    granted(alice);
    Acquire bob = queued(by_bob(lock("x")), 1h);
    bob.unless_held = {lock("y")};
    EXPECT_FALSE(apply(bob));
    elapse(1s);
    EXPECT_EQ(granted(expiry(alice)).lock.state, LockState::expired);
    EXPECT_TRUE(granted(bob).stolen_from);
}

// The clock of these tests stands still, so a waiter that is not told would wait until the watchdog moves it.
TEST_P(StoreConformance, AWaitInLineEndsWhenTheLockIsHandedOnByAnExpire) {
    const Acquire alice = by_alice(lock("x"), 1s);
    granted(alice);
    const Acquire bob = queued(by_bob(lock("x"), 1h), 1h);
    EXPECT_FALSE(apply(bob));
    elapse(1s);
    granted(expiry(alice));
    const Watch watch{.name = lock("x"), .seen_seq = 1, .ticket = bob.as.lock_id};
    auto woken = std::async(std::launch::async,
                            [&] { return store().wait_for_change(watch, Deadline::in(harness().clock(), 1h)); });
    const bool in_time = woken.wait_for(60s) == std::future_status::ready;
    if (!in_time) elapse(2h);
    const auto handed_on = must(woken.get());
    EXPECT_TRUE(in_time);
    ASSERT_EQ(handed_on.has_value(), properties().shows_only_durable);
    if (handed_on) {
        EXPECT_EQ(handed_on->lock.lease->lock_id, bob.as.lock_id);
    }
}

TEST_P(StoreConformance, OfManyThatSweepAtOnceExactlyOneAnnounces) {
    const Acquire alice = by_alice(lock("x"), 1s);
    granted(alice);
    elapse(1s);
    constexpr std::size_t sweepers = 4;
    std::vector<Reply> replies(sweepers, std::unexpected(Error{}));
    {
        std::latch start(sweepers);
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < sweepers; ++i)
            threads.emplace_back([&, i] {
                const auto other = properties().is_shared ? must(harness().open_another()) : nullptr;
                start.arrive_and_wait();
                replies[i] = (other ? *other : store()).apply_one(expiry(alice), soon());
            });
    }
    EXPECT_EQ(std::ranges::count_if(replies, &Reply::has_value), 1);
    EXPECT_THAT(replies, testing::Each(testing::AnyOf(Granted(), RefusedWith(Errc::lock_not_held))));
    EXPECT_EQ(kinds(lock("x")), (std::vector{EventKind::acquired, EventKind::expired}));
}

TEST_P(StoreConformance, ABatchCanAnnounceALeaseAndTakeItsLock) {
    const Acquire alice = by_alice(lock("x"), 1s);
    granted(alice);
    elapse(1s);
    const std::vector<Request> batch{expiry(alice), expiry(alice), renewal(alice, Revive::yes), by_bob(lock("x"))};
    const auto replies = must(store().apply(batch, soon()));
    EXPECT_THAT(replies[0], Granted());
    EXPECT_THAT(replies[1], RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(replies[2], RefusedWith(Errc::lock_expired));
    ASSERT_THAT(replies[3], Granted());
    EXPECT_TRUE(replies[3]->stolen_from);
    expect_whole_chain(lock("x"));
}

}  // namespace holdfast::tests
