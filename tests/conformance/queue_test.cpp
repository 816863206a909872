// The queue is fair: who came first is served first, and who is gone is passed over.
#include "conformance/store_conformance.hpp"

namespace holdfast::tests {

using namespace std::chrono_literals;

TEST_P(StoreConformance, OnlyTheFirstInLineMayTakeAFreeLock) {
    const Acquire alice = by_alice(lock("x"));
    const Acquire bob = queued(by_bob(lock("x")));
    const Acquire carol = queued(by_carol(lock("x")));
    granted(alice);
    EXPECT_THAT(apply(bob), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(apply(carol), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(inspect(lock("x")).waiters, 2U);
    granted(release(alice));

    EXPECT_THAT(apply(carol), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(apply(by_alice(lock("x"))), RefusedWith(Errc::lock_conflict))
        << "who does not wait has no place in line";
    EXPECT_EQ(granted(bob).lock.waiters, 1U);
    granted(release(bob));
    EXPECT_EQ(granted(carol).lock.waiters, 0U);
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, AReleaseHandsTheLockOnToTheFirstWaiter) {
    const Acquire alice = by_alice(lock("x"));
    Acquire bob = queued(by_bob(lock("x")));
    bob.operation = "deploy";
    bob.reason = "v2";
    bob.max_hold = 1h;
    bob.meta = {{"ticket", "42"}};
    const FencingToken before = granted(alice).lock.token;
    EXPECT_FALSE(apply(bob));
    EXPECT_FALSE(apply(queued(by_carol(lock("x")))));
    granted(release(alice));

    const LockStatus status = inspect(lock("x"));
    ASSERT_EQ(status.state, LockState::held);
    EXPECT_EQ(status.lease->lock_id, bob.as.lock_id);
    EXPECT_EQ(status.lease->holder, bob.holder);
    EXPECT_EQ(status.lease->operation, "deploy");
    EXPECT_EQ(status.lease->reason, "v2");
    EXPECT_EQ(status.lease->meta, bob.meta);
    EXPECT_TRUE(status.lease->max_until);
    EXPECT_GT(status.token, before);
    EXPECT_EQ(status.waiters, 1U);
    EXPECT_EQ(kinds(lock("x")), (std::vector{EventKind::acquired, EventKind::released, EventKind::acquired}));
    EXPECT_THAT(apply(renewal(bob)), Granted());
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, AWaiterWithTheLongestTextsIsHandedTheLock) {
    const LockName name = lock(std::string(255, 'x'));
    const Acquire alice = by_alice(name);
    granted(alice);
    Acquire bob = queued(by_bob(name));
    bob.holder = {std::string(255, 'h'), std::string(255, 'u')};
    bob.operation = std::string(255, 'o');
    bob.reason = std::string(1024, 'r');
    bob.meta = {{"k", std::string(4095, 'm')}};
    EXPECT_THAT(apply(bob), RefusedWith(Errc::lock_conflict));
    granted(release(alice));
    const LockStatus status = inspect(name);
    ASSERT_EQ(status.state, LockState::held);
    EXPECT_EQ(status.lease->holder, bob.holder);
    EXPECT_EQ(status.lease->operation, bob.operation);
    EXPECT_EQ(status.lease->reason, bob.reason);
    EXPECT_EQ(status.lease->meta, bob.meta);
}

TEST_P(StoreConformance, AWaiterThatIsGoneKeepsTheLockNoLongerThanItsPlace) {
    const Acquire alice = by_alice(lock("x"), 1h);
    granted(alice);
    const Acquire gone = queued(by_bob(lock("x"), 1h), 5s);
    EXPECT_FALSE(apply(gone));
    const Acquire carol = queued(by_carol(lock("x"), 1h), 1h);
    EXPECT_FALSE(apply(carol));
    granted(release(alice));
    EXPECT_EQ(inspect(lock("x")).lease->lock_id, gone.as.lock_id);
    elapse(5s);
    const Outcome stolen = granted(carol);
    ASSERT_TRUE(stolen.stolen_from);
    EXPECT_EQ(stolen.stolen_from->lock_id, gone.as.lock_id);
}

TEST_P(StoreConformance, ALockIsHandedOnThroughAWholeBatch) {
    const Acquire alice = by_alice(lock("x"));
    const Acquire bob = queued(by_bob(lock("x")));
    const Acquire carol = queued(by_carol(lock("x")));
    granted(alice);
    EXPECT_FALSE(apply(bob));
    EXPECT_FALSE(apply(carol));
    const std::vector<Request> batch{release(alice), release(bob), release(carol)};
    for (const Reply& reply : must(store().apply(batch, soon()))) EXPECT_THAT(reply, Granted());
    EXPECT_EQ(inspect(lock("x")).state, LockState::free);
    EXPECT_EQ(inspect(lock("x")).waiters, 0U);
    EXPECT_EQ(history(lock("x")).size(), 6U);
    expect_whole_chain(lock("x"));
}

namespace {

/// Bob was handed the lock and has looked at it, so that a store may remember who comes next; Carol waits.
struct Succession {
    const Acquire bob = queued(by_bob(lock("x")), 1h);
    const Acquire carol = queued(by_carol(lock("x")), 1h);

    explicit Succession(Store& store, Deadline soon) {
        const Acquire alice = by_alice(lock("x"));
        must(store.apply_one(alice, soon));
        for (const Acquire& waiter : {bob, carol})
            EXPECT_THAT(store.apply_one(waiter, soon), RefusedWith(Errc::lock_conflict));
        must(store.apply_one(release(alice), soon));
        must(store.wait_for_change({.name = lock("x"), .seen_seq = 1, .ticket = bob.as.lock_id}, soon));
    }
};

}  // namespace

TEST_P(StoreConformance, AWaiterThatHasLeftIsNotHandedTheLock) {
    const auto other = properties().is_shared ? must(harness().open_another()) : nullptr;
    Store& others = other ? *other : store();
    const Succession line(store(), soon());
    must(others.apply_one(cancel(line.carol), soon()));
    granted(release(line.bob));
    EXPECT_EQ(inspect(lock("x")).state, LockState::free);
}

TEST_P(StoreConformance, AWaiterThatKeptItsPlaceMeanwhileIsHandedTheLock) {
    const auto other = properties().is_shared ? must(harness().open_another()) : nullptr;
    Store& others = other ? *other : store();
    const Succession line(store(), soon());
    EXPECT_THAT(others.apply_one(line.carol, soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(others.apply_one(queued(by("dave", lock("x"), 1h), 1h), soon()), RefusedWith(Errc::lock_conflict));
    granted(release(line.bob));
    EXPECT_EQ(inspect(lock("x")).lease->lock_id, line.carol.as.lock_id);
    EXPECT_EQ(inspect(lock("x")).waiters, 1U);
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, SeveralReleasesInOneBatchHandTheLockOn) {
    const Succession line(store(), soon());
    const Acquire dave = queued(by("dave", lock("x"), 1h), 1h);
    EXPECT_THAT(apply(dave), RefusedWith(Errc::lock_conflict));
    const std::vector<Request> batch{release(line.bob), release(line.carol)};
    for (const Reply& reply : must(store().apply(batch, soon()))) EXPECT_THAT(reply, Granted());
    EXPECT_EQ(inspect(lock("x")).lease->lock_id, dave.as.lock_id);
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, ADeadWaiterIsNotHandedTheLock) {
    const Succession line(store(), soon());
    elapse(2h);
    granted(release(line.bob));
    EXPECT_EQ(inspect(lock("x")).state, LockState::free);
}

TEST_P(StoreConformance, FiftyWaitersAreServedInTheOrderOfTheirArrival) {
    const Acquire first = by_alice(lock("x"), 1h);
    granted(first);
    std::vector<Acquire> line{first};
    for (int waiter = 0; waiter < 50; ++waiter) {
        line.push_back(queued(by("waiter " + std::to_string(waiter), lock("x"), 1h), 1h));
        EXPECT_THAT(apply(line.back()), RefusedWith(Errc::lock_conflict));
    }
    for (std::size_t next = 1; next < line.size(); ++next) {
        granted(release(line[next - 1]));
        if (next + 1 < line.size()) {
            EXPECT_THAT(apply(line.back()), RefusedWith(Errc::lock_conflict));
        }
        EXPECT_EQ(granted(line[next]).lock.waiters, line.size() - 1 - next);
    }
}

TEST_P(StoreConformance, RepeatingTheRequestKeepsThePlaceInLine) {
    granted(by_alice(lock("x"), 1s));
    const Acquire bob = queued(by_bob(lock("x")), 600ms);
    const Acquire carol = queued(by_carol(lock("x")), 10s);
    EXPECT_FALSE(apply(bob));
    EXPECT_FALSE(apply(carol));
    elapse(500ms);
    EXPECT_FALSE(apply(bob));
    elapse(500ms);
    EXPECT_THAT(apply(carol), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(apply(bob), Granted());
}

TEST_P(StoreConformance, AWaiterThatStopsAskingDropsOut) {
    granted(by_alice(lock("x"), 1s));
    EXPECT_FALSE(apply(queued(by_bob(lock("x")), 500ms)));
    const Acquire carol = queued(by_carol(lock("x")), 10s);
    EXPECT_FALSE(apply(carol));
    elapse(1s);
    EXPECT_EQ(inspect(lock("x")).waiters, 1U);
    EXPECT_THAT(apply(carol), Granted());
}

TEST_P(StoreConformance, AWaiterWhoseTicketRanOutIsTheLast) {
    granted(by_alice(lock("x"), 10s));
    const Acquire bob = queued(by_bob(lock("x")), 500ms);
    const Acquire carol = queued(by_carol(lock("x")), 1h);
    EXPECT_FALSE(apply(bob));
    EXPECT_FALSE(apply(carol));
    elapse(1s);
    EXPECT_FALSE(apply(bob));
    EXPECT_EQ(inspect(lock("x")).waiters, 2U);
    elapse(9s);
    EXPECT_THAT(apply(bob), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(apply(carol), Granted());
}

TEST_P(StoreConformance, CancellingLeavesTheLine) {
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    const Acquire bob = queued(by_bob(lock("x")));
    EXPECT_FALSE(apply(bob));
    EXPECT_THAT(apply(cancel(bob)), Granted());
    EXPECT_THAT(apply(cancel(bob)), Granted());
    EXPECT_EQ(inspect(lock("x")).waiters, 0U);
    granted(release(alice));
    EXPECT_THAT(apply(by_carol(lock("x"))), Granted());
}

TEST_P(StoreConformance, CancellingAfterTheGrantGivesItBack) {
    const Acquire bob = queued(by_bob(lock("x")));
    granted(bob);
    EXPECT_THAT(apply(cancel(bob)), Granted());
    EXPECT_EQ(inspect(lock("x")).state, LockState::free);
    EXPECT_EQ(kinds(lock("x")), (std::vector{EventKind::acquired, EventKind::released}));
}

TEST_P(StoreConformance, ATicketCannotBeCancelledOrUsedWithoutItsKey) {
    granted(by_alice(lock("x"), 1s));
    const Acquire bob = queued(by_bob(lock("x")));
    EXPECT_FALSE(apply(bob));
    Acquire thief = queued(by_carol(lock("x")));
    thief.as.lock_id = bob.as.lock_id;
    EXPECT_THAT(apply(cancel(thief)), Granted());
    EXPECT_EQ(inspect(lock("x")).waiters, 1U);
    elapse(1s);
    EXPECT_THAT(apply(thief), RefusedWith(Errc::denied));
    EXPECT_THAT(apply(bob), Granted());
}

TEST_P(StoreConformance, ATicketThatRanOutProtectsNobody) {
    granted(by_alice(lock("x"), 10s));
    const Acquire bob = queued(by_bob(lock("x")), 500ms);
    EXPECT_FALSE(apply(bob));
    elapse(1s);
    Acquire same_id = by_carol(lock("x"));
    same_id.as.lock_id = bob.as.lock_id;
    EXPECT_THAT(apply(same_id), RefusedWith(Errc::lock_conflict))
        << "the same answer whether or not it is still stored";
    elapse(9s);
    EXPECT_THAT(apply(same_id), Granted());
}

TEST_P(StoreConformance, WaitingWritesNoAuditEvent) {
    granted(by_alice(lock("x")));
    const Acquire bob = queued(by_bob(lock("x")));
    EXPECT_FALSE(apply(bob));
    granted(cancel(bob));
    EXPECT_EQ(inspect(lock("x")).seq, 1U);
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, AQueueBehindAnExcludingLockIsServedInOrderToo) {
    const Acquire freeze = by_alice(lock("freeze"));
    granted(freeze);
    Acquire bob = queued(by_bob(lock("x")));
    Acquire carol = queued(by_carol(lock("x")));
    bob.unless_held = carol.unless_held = {lock("freeze")};
    EXPECT_FALSE(apply(bob));
    EXPECT_FALSE(apply(carol));
    granted(release(freeze));
    EXPECT_THAT(apply(carol), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(apply(bob), Granted());
}

// A store that remembers the lock as free must ask for the queue all the same.
TEST_P(StoreConformance, AClientThatKnowsTheLockToBeFreeDoesNotPassAWaiter) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " has one client only";
    const auto other = must(harness().open_another());
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    granted(release(alice));
    must(other->apply_one(by("dave", lock("freeze"), 1h), soon()));
    Acquire bob = queued(by_bob(lock("x")));
    bob.unless_held = {lock("freeze")};
    EXPECT_THAT(other->apply_one(bob, soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(apply(by_carol(lock("x"))), RefusedWith(Errc::lock_conflict)) << "bob was first";
}

TEST_P(StoreConformance, TicketsSurviveReopening) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " forgets when it is closed";
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    const Acquire bob = queued(by_bob(lock("x")));
    EXPECT_FALSE(apply(bob));
    ASSERT_THAT(harness().reopen(), Granted());
    granted(release(alice));
    EXPECT_THAT(apply(by_carol(lock("x"))), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(apply(bob), Granted());
}

}  // namespace holdfast::tests
