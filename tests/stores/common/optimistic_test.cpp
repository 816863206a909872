// Goal: what is predicted of a lock is what this process left there last, and memory stays bounded.
#include "stores/common/optimistic.hpp"

#include "support/requests.hpp"

#include <gtest/gtest.h>

namespace holdfast::stores {
namespace {

using namespace std::chrono_literals;
using tests::lock;

struct Known {
    kernel::Record record;
    int mark = 0;
};

Known known(const LockName& name, int mark) { return {kernel::blank(name), mark}; }

TEST(LockCache, KeepsAtLeastTheLastGenerationAndAtMostTwo) {
    LockCache<int> cache(10);
    for (int i = 0; i < 100; ++i) cache.remember(lock("x" + std::to_string(i)), i);
    int kept = 0;
    for (int i = 0; i < 100; ++i) kept += cache.find(lock("x" + std::to_string(i))) ? 1 : 0;
    EXPECT_LE(kept, 20);
    for (int i = 90; i < 100; ++i) EXPECT_EQ(cache.find(lock("x" + std::to_string(i))), i);
}

TEST(LockCache, ForgetsALockInBothGenerations) {
    LockCache<int> cache(1);
    cache.remember(lock("x"), 1);
    cache.remember(lock("y"), 2);
    EXPECT_EQ(cache.find(lock("x")), 1);
    cache.forget(lock("x"));
    cache.forget(lock("y"));
    EXPECT_FALSE(cache.find(lock("x")));
    EXPECT_FALSE(cache.find(lock("y")));
}

TEST(LockCache, PrefersTheNewerState) {
    LockCache<int> cache(2);
    cache.remember(lock("x"), 1);
    cache.remember(lock("y"), 1);
    cache.remember(lock("x"), 2);
    EXPECT_EQ(cache.find(lock("x")), 2);
}

TEST(Prediction, OfAnUnknownLockIsThatItIsNew) {
    OptimisticState<Known> state;
    const auto predicted = state.predict(lock("x"));
    ASSERT_TRUE(predicted);
    EXPECT_EQ(predicted->record.seq, 0U);
    EXPECT_FALSE(state.is_contended(lock("x")));
}

TEST(Prediction, IsWhatWasRememberedLast) {
    OptimisticState<Known> state;
    state.remember(known(lock("x"), 1));
    state.remember(known(lock("x"), 2));
    EXPECT_EQ(state.predict(lock("x"))->mark, 2);
}

TEST(Prediction, OfAContendedLockIsNotMadeUntilItIsChangedAgain) {
    OptimisticState<Known> state;
    state.remember(known(lock("x"), 1));
    state.mark_contended(lock("x"));
    EXPECT_FALSE(state.predict(lock("x")));
    EXPECT_TRUE(state.is_contended(lock("x")));
    state.remember(known(lock("x"), 2));
    EXPECT_EQ(state.predict(lock("x"))->mark, 2);
}

TEST(Prediction, ThatALockIsNewIsNotMadeForAWhileAfterAWrongOne) {
    OptimisticState<Known> state;
    state.remember(known(lock("x"), 1));
    state.mispredicted_new_lock();
    EXPECT_TRUE(state.predict(lock("x"))) << "what is in the cache is predicted all the same";
    int reads = 0;
    while (!state.predict(lock("y")) && reads < 1000) ++reads;
    EXPECT_EQ(reads, 32);
}

TEST(Prediction, IsNotMadeOfWhatDependsOnOtherLocksOrChangesNothing) {
    EXPECT_TRUE(is_predictable(tests::by_alice(lock("x"))));
    EXPECT_TRUE(is_predictable(tests::renewal(tests::by_alice(lock("x")))));
    EXPECT_TRUE(is_predictable(tests::release(tests::by_alice(lock("x")))));
    Acquire excluded = tests::by_alice(lock("x"));
    excluded.unless_held = {lock("y")};
    EXPECT_FALSE(is_predictable(excluded));
    EXPECT_FALSE(is_predictable(Break{lock("x"), {}, "root", "it is needed"}));
}

TEST(Record, IsSettledWhileItsLeaseRunsAndTheClockIsNotBehindIt) {
    kernel::Record record = kernel::blank(lock("x"));
    const Instant now{1000s};
    record.changed_at = now;
    EXPECT_TRUE(is_settled(record, now));
    EXPECT_FALSE(is_settled(record, now - 1ms));
    record.held.emplace();
    record.held->lease.expires_at = now + 1ms;
    EXPECT_TRUE(is_settled(record, now));
    EXPECT_FALSE(is_settled(record, now + 1ms)) << "at its end the lease has run out";
}

TEST(Record, IsNotChangedBeforeItsLastEventUnlessTheClockWasSetBack) {
    kernel::Record record = kernel::blank(lock("x"));
    const Instant now{1000s};
    record.changed_at = now + 50ms;
    EXPECT_EQ(not_before(record, now), now + 50ms);
    record.changed_at = now - 50ms;
    EXPECT_EQ(not_before(record, now), now);
    record.changed_at = now + 1h;
    EXPECT_EQ(not_before(record, now), now) << "a clock that was set back counts as it is";
}

}  // namespace
}  // namespace holdfast::stores
