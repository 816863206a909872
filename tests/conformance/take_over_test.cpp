// A lease whose holder no longer renews it is taken over in one step; a renewal in between prevents that.
#include "conformance/store_conformance.hpp"

#include <barrier>
#include <random>
#include <thread>

namespace holdfast::tests {

using namespace std::chrono_literals;

namespace {

Acquire take_over(const LockStatus& seen, std::chrono::milliseconds after) {
    Acquire request = by_bob(seen.name);
    request.takes_over = StaleLease{seen.lease->lock_id, seen.lease->renew_seq, after};
    return request;
}

}  // namespace

TEST_P(StoreConformance, AStaleLeaseIsTakenOverInOneStep) {
    const Acquire alice = by_alice(lock("x"), 60s);
    const Outcome first = granted(alice);
    const LockStatus seen = inspect(lock("x"));
    elapse(10s);
    EXPECT_THAT(apply(take_over(seen, 30s)), RefusedWith(Errc::lock_conflict));
    elapse(25s);

    const Acquire bob = take_over(seen, 30s);
    const Outcome taken = granted(bob);

    ASSERT_TRUE(taken.stolen_from);
    EXPECT_EQ(taken.stolen_from->lock_id, alice.as.lock_id);
    EXPECT_GT(taken.lock.token, first.lock.token);
    EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(kinds(lock("x")), (std::vector{EventKind::acquired, EventKind::stolen}));
    EXPECT_TRUE(history(lock("x")).back().details.contains("stale_since"));
    // A repeat after a lost answer.
    EXPECT_EQ(granted(bob).lock.token, taken.lock.token);
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, ARenewalSinceTheLookPreventsATakeOver) {
    const Acquire alice = by_alice(lock("x"), 60s);
    granted(alice);
    const LockStatus seen = inspect(lock("x"));
    elapse(35s);
    const Outcome renewed = granted(renewal(alice));
    EXPECT_THAT(apply(take_over(seen, 30s)), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(inspect(lock("x")).lease, renewed.lock.lease);
}

// Both are sent at once. Whichever the store decides first, the other one is refused: a renewal that is granted is
// never followed by a take-over of what was seen before it.
TEST_P(StoreConformance, ATakeOverAndARenewalAtTheSameTimeAreNotBothGranted) {
    std::mt19937 random(20);
    for (int round = 0; round < 10; ++round) {
        SCOPED_TRACE(round);
        const LockName name = lock("race/" + std::to_string(round));
        const Acquire alice = by_alice(name, 60s);
        granted(alice);
        const LockStatus seen = inspect(name);
        elapse(35s);

        std::barrier start(2);
        Result<Outcome> renewed = fail(Errc::usage, "");
        const bool renewal_waits = random() % 2 == 0;
        std::jthread holder([&] {
            start.arrive_and_wait();
            if (renewal_waits) std::this_thread::yield();
            renewed = apply(renewal(alice));
        });
        start.arrive_and_wait();
        const Reply taken = apply(take_over(seen, 30s));
        holder.join();

        EXPECT_NE(taken.has_value(), renewed.has_value());
        const LockStatus after = inspect(name);
        EXPECT_EQ(after.lease->lock_id == alice.as.lock_id, renewed.has_value());
        expect_whole_chain(name);
    }
}

}  // namespace holdfast::tests
