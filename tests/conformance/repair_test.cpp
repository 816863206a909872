// A lock of which something cannot be read is made usable again, and nothing that can be read is lost by it.
#include "conformance/store_conformance.hpp"

#include <algorithm>

namespace holdfast::tests {

using namespace std::chrono_literals;
using testing::ElementsAre;

namespace {

Repair repair(const LockName& name) { return {name, "ops", "disk was full"}; }

}  // namespace

TEST_P(StoreConformance, ARepairFreesALockWhoseRecordCannotBeRead) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " stores no bytes";
    const Acquire alice = by_alice(lock("damaged"));
    const FencingToken before = granted(alice).lock.token;
    harness().corrupt(lock("damaged"));
    // Where nothing is known of the token any more, the clock raises it.
    elapse(1s);

    const LockStatus repaired = granted(repair(lock("damaged"))).lock;
    EXPECT_EQ(repaired.state, LockState::free);
    EXPECT_GT(repaired.token, before);
    EXPECT_GE(repaired.token.value, static_cast<std::uint64_t>(now().time_since_epoch().count()));

    for (const bool reopened : {false, true}) {
        if (reopened) must(harness().reopen());
        EXPECT_EQ(inspect(lock("damaged")).state, LockState::free);
        const AuditEvent event = history(lock("damaged")).back();
        EXPECT_EQ(event.kind, EventKind::repaired);
        EXPECT_EQ(event.actor, "ops");
        EXPECT_EQ(event.reason, "disk was full");
        EXPECT_EQ(event.details.at("what"), "the record");
        EXPECT_GT(event.details.at("damaged").size(), 100U);
        expect_whole_chain(lock("damaged"));
        EXPECT_THAT(apply(repair(lock("damaged"))), Granted()) << "repeating it is harmless";
        EXPECT_EQ(inspect(lock("damaged")).seq, event.seq);
    }
    EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(check(lock("damaged"), before)), RefusedWith(Errc::fencing_mismatch));
    EXPECT_GT(granted(by_bob(lock("damaged"))).lock.token, repaired.token);
    expect_whole_chain(lock("damaged"));
}

// The log has more than one part in stores that keep it so.
TEST_P(StoreConformance, ARepairGoesOnFromTheLogThatIsLeft) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " stores no bytes";
    const Acquire alice = by_alice(lock("damaged"));
    granted(alice);
    for (int i = 0; i < 40; ++i) granted(renewal(alice));
    granted(Prune{lock("damaged"), 10, "ops", ""});
    harness().corrupt(lock("damaged"));
    const LockStatus repaired = granted(repair(lock("damaged"))).lock;
    EXPECT_GT(repaired.seq, 11U) << "what was moved to the log is still there";
    expect_whole_chain(lock("damaged"));
    const Acquire bob = by_bob(lock("damaged"));
    granted(bob);
    for (int i = 0; i < 40; ++i) granted(renewal(bob));
    must(harness().reopen());
    expect_whole_chain(lock("damaged"));
}

TEST_P(StoreConformance, ARepairNeverFreesALockThatCanBeRead) {
    const Acquire alice = by_alice(lock("sound"));
    granted(alice);
    granted(renewal(alice));
    const LockStatus before = inspect(lock("sound"));
    EXPECT_EQ(granted(repair(lock("sound"))).lock, before);
    EXPECT_EQ(inspect(lock("sound")), before);
    EXPECT_THAT(apply(renewal(alice)), Granted());
    EXPECT_THAT(apply(repair(lock("unused"))), Granted());
    EXPECT_EQ(inspect(lock("unused")).seq, 0U);
}

TEST_P(StoreConformance, ARepairOfAQueueKeepsTheLeaseAndItsToken) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " stores no bytes";
    const Acquire alice = by_alice(lock("x"), 1h);
    const FencingToken token = granted(alice).lock.token;
    const Acquire bob = queued(by_bob(lock("x")));
    EXPECT_THAT(apply(bob), RefusedWith(Errc::lock_conflict));
    harness().corrupt_queue(lock("x"));
    EXPECT_THAT(apply(release(alice)), RefusedWith(Errc::record_corrupt));

    const LockStatus repaired = granted(repair(lock("x"))).lock;
    EXPECT_EQ(repaired.state, LockState::held);
    EXPECT_EQ(repaired.token, token);
    EXPECT_EQ(repaired.waiters, 0U);
    EXPECT_EQ(history(lock("x")).back().details.at("what"), "the queue");
    EXPECT_THAT(apply(renewal(alice)), Granted());
    EXPECT_THAT(apply(bob), RefusedWith(Errc::lock_conflict)) << "it queues up again";
    EXPECT_EQ(inspect(lock("x")).waiters, 1U);
    EXPECT_THAT(apply(release(alice)), Granted());
    EXPECT_EQ(inspect(lock("x")).lease->holder.text, "bob");
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, ARepairInABatchCountsForTheRequestsBehindIt) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " stores no bytes";
    const Acquire alice = by_alice(lock("sound"));
    granted(alice);
    granted(by_alice(lock("damaged")));
    harness().corrupt(lock("damaged"));
    const auto replies = must(store().apply(
        std::vector<Request>{by_bob(lock("damaged")), repair(lock("damaged")), by_bob(lock("damaged")), renewal(alice)},
        soon()));
    EXPECT_THAT(replies[0], RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(replies[1], Granted());
    EXPECT_THAT(replies[2], Granted());
    EXPECT_THAT(replies[3], Granted());
    expect_whole_chain(lock("damaged"));
}

TEST_P(StoreConformance, ALockThatCannotBeReadHidesNoOther) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " stores no bytes";
    for (const char* name : {"first", "middle", "third"}) granted(by_alice(lock(name)));
    harness().corrupt(lock("middle"));
    for (const bool with_free : {false, true}) {
        const ListQuery query{.with_free = with_free};
        EXPECT_THAT(store().list(query, soon()), RefusedWith(Errc::record_corrupt));
        ListQuery all = query;
        all.with_unreadable = true;
        const auto found = must(store().list(all, soon()));
        ASSERT_EQ(found.size(), 3U);
        EXPECT_EQ(found[0].state, LockState::held);
        EXPECT_EQ(found[1].name, lock("middle"));
        EXPECT_EQ(found[1].state, LockState::unreadable);
        EXPECT_EQ(found[2].state, LockState::held);
    }
}

}  // namespace holdfast::tests
