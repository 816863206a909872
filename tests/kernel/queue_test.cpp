// The queue: fair among live waiters, and of no help to requests that do not wait in it.

#include "kernel/little_store.hpp"

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using kernel::Ticket;

class QueueTest : public KernelTest {
protected:
    void SetUp() override { granted(alice_); }

    [[nodiscard]] const std::vector<Ticket>& tickets() { return store_.shelf(name_).tickets; }

    const Acquire alice_ = by_alice(name_, 1h);
    const Acquire bob_ = queued(by_bob(name_), 10s);
    const Acquire carol_ = queued(by_carol(name_), 10s);
};

TEST_F(QueueTest, ARefusedWaiterGetsATicketAndNothingElseChanges) {
    expect_untouched(bob_, Errc::lock_conflict);
    ASSERT_EQ(tickets().size(), 1U);
    const kernel::Claim claim{bob_.operation, bob_.reason, bob_.ttl.time(), bob_.max_hold, bob_.meta};
    EXPECT_EQ(tickets()[0], (Ticket{bob_.as.lock_id, bob_.as.key.hash(), 1, bob_.holder, now(), now() + 10s, claim}));
}

TEST_F(QueueTest, ARequestThatDoesNotWaitLeavesNoTicket) {
    apply(by_bob(name_));
    EXPECT_TRUE(tickets().empty());
}

TEST_F(QueueTest, AGrantAtOnceLeavesNoTicket) {
    granted(release(alice_));
    granted(bob_);
    EXPECT_TRUE(tickets().empty());
    EXPECT_EQ(status().waiters, 0U);
}

TEST_F(QueueTest, TicketsAreServedInTheOrderOfArrival) {
    apply(bob_);
    apply(carol_);
    granted(release(alice_));
    expect_untouched(carol_, Errc::lock_conflict);
    EXPECT_THAT(apply(bob_), Granted());
    expect_untouched(carol_, Errc::lock_conflict);
    granted(release(bob_));
    EXPECT_THAT(apply(carol_), Granted());
    EXPECT_TRUE(tickets().empty());
}

TEST_F(QueueTest, AReleaseHandsTheLockOnToTheFirstWaiter) {
    Acquire bob = bob_;
    bob.operation = "deploy";
    bob.reason = "v2";
    bob.max_hold = 1h;
    bob.meta = {{"ticket", "42"}};
    apply(bob);
    apply(carol_);
    elapse(4s);
    const Outcome released = granted(release(alice_));

    EXPECT_EQ(released.lock.state, LockState::held);
    EXPECT_EQ(released.lock.waiters, 1U);
    const Lease lease = *status().lease;
    EXPECT_EQ(lease.lock_id, bob.as.lock_id);
    EXPECT_EQ(lease.holder, bob.holder);
    EXPECT_EQ(lease.operation, "deploy");
    EXPECT_EQ(lease.reason, "v2");
    EXPECT_EQ(lease.meta, bob.meta);
    EXPECT_EQ(lease.ttl, bob.ttl.time());
    EXPECT_EQ(lease.acquired_at, now());
    EXPECT_EQ(lease.max_until, now() + 1h);
    EXPECT_EQ(lease.token, status().token);
    const auto& events = store_.shelf(name_).events;
    ASSERT_EQ(events.size(), 3U);
    EXPECT_EQ(events[1].kind, EventKind::released);
    EXPECT_EQ(events[2].kind, EventKind::acquired);
    EXPECT_EQ(events[2].holder, bob.holder);
    EXPECT_EQ(events[2].reason, "v2");
    ASSERT_EQ(tickets().size(), 1U);
    EXPECT_EQ(tickets()[0].lock_id, carol_.as.lock_id);
}

TEST_F(QueueTest, ALeaseThatWasHandedOnLastsAsLongAsTheTicketUntilItIsRenewed) {
    apply(bob_);
    elapse(4s);
    granted(release(alice_));
    EXPECT_EQ(status().lease->expires_at, now() + 6s) << "of a dead waiter's ticket nobody would see more";
    granted(renewal(bob_));
    EXPECT_EQ(status().lease->expires_at, now() + bob_.ttl.time());
}

TEST_F(QueueTest, AHandedOnLeaseLastsAsLongAsThePlaceButNotBeyondTheLongestHold) {
    Acquire brief = queued(by_bob(name_, 2s), 10s);
    apply(brief);
    Acquire briefer = queued(by_carol(name_, 2s), 10s);
    briefer.max_hold = 3s;
    apply(briefer);
    granted(release(alice_));
    EXPECT_EQ(status().lease->expires_at, now() + 10s) << "so long it may not have heard of it";
    granted(release(brief));
    EXPECT_EQ(status().lease->expires_at, now() + 3s);
}

TEST_F(QueueTest, AskingAgainForALockThatWasHandedOnGivesItItsTtl) {
    apply(bob_);
    elapse(4s);
    const FencingToken token = granted(release(alice_)).lock.token;
    const Outcome outcome = granted(bob_);
    EXPECT_EQ(outcome.lock.token, token);
    EXPECT_EQ(outcome.lock.lease->expires_at, now() + bob_.ttl.time());
}

TEST_F(QueueTest, AWaiterWithUnlessHeldIsNotHandedTheLock) {
    Acquire bob = bob_;
    bob.unless_held = {lock("deploy/freeze")};
    apply(bob);
    granted(release(alice_));
    EXPECT_EQ(status().state, LockState::free);
    EXPECT_THAT(apply(bob), Granted());
}

TEST_F(QueueTest, CancellingAGrantHandsItOn) {
    apply(bob_);
    apply(carol_);
    granted(release(alice_));
    granted(cancel(bob_));
    EXPECT_EQ(status().lease->lock_id, carol_.as.lock_id);
    EXPECT_TRUE(tickets().empty());
}

TEST_F(QueueTest, ABrokenLockIsFreeWhoeverWaits) {
    apply(bob_);
    granted(Break{name_, alice_.as.lock_id, "root", "stuck"});
    EXPECT_EQ(status().state, LockState::free);
    EXPECT_THAT(apply(bob_), Granted());
}

TEST_F(QueueTest, APlaceThatALeaseLeftBehindIsNotHandedItsLock) {
    Ticket left{alice_.as.lock_id, alice_.as.key.hash(), 1, alice_.holder, now(), now() + 10s, kernel::Claim{}};
    store_.shelf(name_).tickets.push_back(left);
    granted(release(alice_));
    EXPECT_EQ(status().state, LockState::free);
}

TEST_F(QueueTest, ARequestThatDoesNotWaitCannotPassTheFirstWaiter) {
    apply(bob_);
    granted(Break{name_, alice_.as.lock_id, "root", "stuck"});
    const Reply reply = apply(by("dave", name_, 1s));
    ASSERT_THAT(reply, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(reply.error().retry_after, 10s);
    EXPECT_EQ(reply.error().holder->state, LockState::free);
}

TEST_F(QueueTest, AnExpiredLeaseIsAlsoTakenInOrder) {
    granted(release(alice_));
    granted(by("dave", name_, 5s));
    apply(bob_);
    apply(carol_);
    elapse(6s);
    expect_untouched(carol_, Errc::lock_conflict);
    expect_untouched(by("erin", name_, 1s), Errc::lock_conflict);
    EXPECT_TRUE(granted(bob_).stolen_from);
}

TEST_F(QueueTest, AWaiterThatDiedIsPassedOver) {
    apply(bob_);
    elapse(5s);
    apply(carol_);
    granted(release(alice_));
    elapse(5s);
    EXPECT_THAT(apply(carol_), Granted());
}

TEST_F(QueueTest, LookingAgainKeepsTheTicketAliveAndItsNumber) {
    apply(bob_);
    apply(carol_);
    elapse(9s);
    apply(bob_);
    ASSERT_EQ(tickets().size(), 2U);
    EXPECT_EQ(tickets()[0].lock_id, bob_.as.lock_id);
    EXPECT_EQ(tickets()[0].number, 1U);
    EXPECT_EQ(tickets()[0].enqueued_at, now() - 9s);
    EXPECT_EQ(tickets()[0].expires_at, now() + 10s);
    EXPECT_EQ(status().waiters, 2U);
}

TEST_F(QueueTest, AWaiterWhoseTicketExpiredGoesToTheEnd) {
    apply(bob_);
    elapse(9s);
    apply(carol_);
    elapse(1s);
    apply(bob_);
    ASSERT_EQ(tickets().size(), 2U);
    EXPECT_EQ(tickets()[0].lock_id, carol_.as.lock_id);
    EXPECT_EQ(tickets()[1].lock_id, bob_.as.lock_id);
    granted(release(alice_));
    expect_untouched(bob_, Errc::lock_conflict);
    EXPECT_THAT(apply(carol_), Granted());
}

TEST_F(QueueTest, AnExpiredTicketOfItsOwnDoesNotHinderAGrantAndGoes) {
    apply(bob_);
    elapse(10s);
    granted(release(alice_));
    EXPECT_EQ(granted(bob_).lock.waiters, 0U);
    EXPECT_TRUE(tickets().empty());
}

TEST_F(QueueTest, AGrantTakesTheTicketAway) {
    apply(bob_);
    apply(carol_);
    granted(release(alice_));
    EXPECT_EQ(granted(bob_).lock.waiters, 1U);
    ASSERT_EQ(tickets().size(), 1U);
    EXPECT_EQ(tickets()[0].lock_id, carol_.as.lock_id);
}

TEST_F(QueueTest, ATicketIsWorthNothingWithoutItsKey) {
    apply(bob_);
    granted(release(alice_));
    Acquire forged = queued(by("mallory", name_, 1s));
    forged.as.lock_id = bob_.as.lock_id;
    const auto before = tickets();
    expect_untouched(forged, Errc::denied);
    EXPECT_EQ(tickets(), before);
    EXPECT_THAT(apply(bob_), Granted());
}

TEST_F(QueueTest, ATicketThatRanOutProtectsItsLockIdNoLonger) {
    apply(bob_);
    elapse(10s);
    granted(release(alice_));
    Acquire other = by("dave", name_, 1s);
    other.as.lock_id = bob_.as.lock_id;
    EXPECT_THAT(apply(other), Granted());
    EXPECT_TRUE(tickets().empty());
}

TEST_F(QueueTest, CancellingLetsTheNextOneIn) {
    apply(bob_);
    apply(carol_);
    granted(release(alice_));
    granted(cancel(bob_));
    EXPECT_THAT(apply(carol_), Granted());
}

TEST_F(QueueTest, AWaiterIsAlsoQueuedBehindAnExcludingLock) {
    granted(release(alice_));
    granted(by("dave", lock("deploy/freeze"), 5s));
    Acquire bob = bob_;
    bob.unless_held = {lock("deploy/freeze")};
    expect_untouched(bob, Errc::lock_conflict);
    EXPECT_EQ(status().waiters, 1U);
    elapse(5s);
    EXPECT_THAT(apply(bob), Granted());
}

TEST_F(QueueTest, TheHolderMayReviveItsLeaseWhileOthersWait) {
    granted(Renew{name_, alice_.as, lasting(1s)});
    apply(bob_);
    elapse(2s);
    EXPECT_THAT(apply(renewal(alice_, Revive::yes)), Granted());
    expect_untouched(bob_, Errc::lock_conflict);
}

}  // namespace
}  // namespace holdfast::tests
