// Many requests in one call: answered in order, each by itself.
#include "conformance/store_conformance.hpp"

namespace holdfast::tests {

using namespace std::chrono_literals;

TEST_P(StoreConformance, ABatchIsAnsweredInOrderEachRequestByItself) {
    const Acquire alice = by_alice(lock("x"));
    const Acquire bob = by_bob(lock("x"));
    const Acquire carol = by_carol(lock("y"));
    const std::vector<Request> batch{alice,
                                     bob,
                                     carol,
                                     release(alice),
                                     renewal(alice),
                                     bob,
                                     by_alice(lock("y")),
                                     release(bob),
                                     release(bob),
                                     by("", lock("z"), 1s)};

    const auto replies = must(store().apply(batch, soon()));

    ASSERT_EQ(replies.size(), batch.size());
    EXPECT_THAT(replies[0], Granted());
    EXPECT_THAT(replies[1], RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(replies[1].error().holder->lease->lock_id, alice.as.lock_id);
    EXPECT_THAT(replies[2], Granted());
    EXPECT_THAT(replies[3], Granted());
    EXPECT_THAT(replies[4], RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(replies[5], Granted());
    EXPECT_THAT(replies[6], RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(replies[7], Granted());
    EXPECT_THAT(replies[8], Granted());
    EXPECT_THAT(replies[9], RefusedWith(Errc::usage));
    EXPECT_GT(replies[5]->lock.token, replies[0]->lock.token);
    EXPECT_EQ(kinds(lock("x")),
              (std::vector{EventKind::acquired, EventKind::released, EventKind::acquired, EventKind::released}));
    EXPECT_EQ(inspect(lock("x")), replies[8]->lock);
    EXPECT_EQ(inspect(lock("y")), replies[2]->lock);
    expect_whole_chain(lock("x"));
    expect_whole_chain(lock("y"));
}

TEST_P(StoreConformance, ALaterRequestOfABatchSeesTheExclusionThatAnEarlierOneMade) {
    Acquire alice = by_alice(lock("a"));
    Acquire bob = by_bob(lock("b"));
    alice.unless_held = {lock("b")};
    bob.unless_held = {lock("a")};
    const auto replies = must(store().apply(std::vector<Request>{alice, bob, release(alice), bob}, soon()));
    EXPECT_THAT(replies[0], Granted());
    EXPECT_THAT(replies[1], RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(replies[3], Granted());
}

TEST_P(StoreConformance, TheQueueWorksInsideABatch) {
    const Acquire alice = by_alice(lock("x"));
    const Acquire bob = queued(by_bob(lock("x")));
    const Acquire carol = queued(by_carol(lock("x")));
    const auto replies =
        must(store().apply(std::vector<Request>{alice, bob, carol, release(alice), carol, bob, cancel(carol)}, soon()));
    EXPECT_THAT(replies[4], RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(replies[5], Granted());
    EXPECT_EQ(replies[5]->lock.waiters, 1U);
    EXPECT_EQ(inspect(lock("x")).waiters, 0U);
}

TEST_P(StoreConformance, NobodyIsPassedWhenManyLeaveTheLineInOneBatch) {
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    std::vector<Acquire> line;
    for (int i = 0; i < 6; ++i) {
        line.push_back(queued(by("waiter " + std::to_string(i), lock("x"), 30s)));
        EXPECT_THAT(apply(line.back()), RefusedWith(Errc::lock_conflict));
    }
    const auto replies = must(store().apply(
        std::vector<Request>{cancel(line[0]), cancel(line[1]), cancel(line[2]), release(alice), line[5]}, soon()));
    EXPECT_THAT(replies[4], RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(inspect(lock("x")).lease->lock_id, line[3].as.lock_id);
    EXPECT_EQ(inspect(lock("x")).waiters, 2U);
}

TEST_P(StoreConformance, AWaiterThatLeavesAndComesBackInOneBatchIsInTheQueue) {
    granted(by_alice(lock("x")));
    const Acquire bob = queued(by_bob(lock("x")));
    EXPECT_FALSE(apply(bob));
    must(store().apply(std::vector<Request>{cancel(bob), bob}, soon()));
    EXPECT_EQ(inspect(lock("x")).waiters, 1U);
}

TEST_P(StoreConformance, ABatchOfAThousandLocksIsGranted) {
    std::vector<Request> batch;
    for (int number = 0; number < 1000; ++number) batch.emplace_back(by_alice(lock("many/" + std::to_string(number))));
    const auto replies = must(store().apply(batch, soon()));
    EXPECT_THAT(replies, testing::Each(Granted()));
    EXPECT_EQ(must(store().list({.prefix = "many/"}, soon())).size(), 1000U);
}

TEST_P(StoreConformance, ACallWhoseTimeIsOverChangesNothing) {
    granted(by_bob(lock("y")));
    const Deadline over = Deadline::in(harness().clock(), 0ms);
    EXPECT_THAT(store().apply_one(by_alice(lock("x")), over), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(history(lock("x")), testing::IsEmpty());
    EXPECT_THAT(apply(by_alice(lock("x"))), Granted());
}

}  // namespace holdfast::tests
