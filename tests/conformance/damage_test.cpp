// A record that cannot be read blocks its lock, and no other. It is never taken for a free lock.
#include "conformance/store_conformance.hpp"

namespace holdfast::tests {

using namespace std::chrono_literals;

TEST_P(StoreConformance, ADamagedRecordBlocksItsLockAndNoOther) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " stores no bytes";
    const Acquire alice = by_alice(lock("damaged"));
    const Acquire bob = by_bob(lock("sound"));
    granted(alice);
    granted(bob);

    harness().corrupt(lock("damaged"));

    for (const bool reopened : {false, true}) {
        if (reopened) must(harness().reopen());
        EXPECT_THAT(store().inspect(lock("damaged"), soon()), RefusedWith(Errc::record_corrupt));
        EXPECT_THAT(apply(by_carol(lock("damaged"))), RefusedWith(Errc::record_corrupt));
        EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::record_corrupt));
        EXPECT_THAT(apply(release(alice)), RefusedWith(Errc::record_corrupt));
        EXPECT_THAT(apply(renewal(bob)), Granted());
        EXPECT_EQ(inspect(lock("sound")).state, LockState::held);
        EXPECT_THAT(apply(by_carol(lock("new " + std::to_string(reopened)))), Granted());
    }
    expect_whole_chain(lock("sound"));
}

TEST_P(StoreConformance, ADamagedRecordIsStillBlockedAfterItsTtl) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " stores no bytes";
    granted(by_alice(lock("x"), 1s));
    harness().corrupt(lock("x"));
    elapse(1h);
    EXPECT_THAT(apply(by_bob(lock("x"))), RefusedWith(Errc::record_corrupt));
}

TEST_P(StoreConformance, ADamagedLockDoesNotCountAsFreeForTheLocksThatItExcludes) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " stores no bytes";
    granted(by_alice(lock("freeze")));
    harness().corrupt(lock("freeze"));
    Acquire bob = by_bob(lock("x"));
    bob.unless_held = {lock("freeze")};
    EXPECT_THAT(apply(bob), RefusedWith(Errc::record_corrupt));
}

TEST_P(StoreConformance, ADamagedLockInABatchSpoilsNoOtherAnswer) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " stores no bytes";
    granted(by_alice(lock("damaged")));
    harness().corrupt(lock("damaged"));
    const auto replies =
        store().apply(std::vector<Request>{by_bob(lock("a")), by_bob(lock("damaged")), by_bob(lock("b"))}, soon());
    ASSERT_THAT(replies, Granted());
    EXPECT_THAT((*replies)[0], Granted());
    EXPECT_THAT((*replies)[1], RefusedWith(Errc::record_corrupt));
    EXPECT_THAT((*replies)[2], Granted());
}

}  // namespace holdfast::tests
