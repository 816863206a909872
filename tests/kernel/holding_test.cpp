// What a holder does with its lease: renew, release, cancel, transfer. And what nobody else can do with it.

#include "kernel/little_store.hpp"

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using kernel::Ending;

class HoldingTest : public KernelTest {
protected:
    void SetUp() override { token_ = token_of(alice_); }

    /// The public half of Alice's lease with a key that somebody made up.
    [[nodiscard]] Credentials forged() const { return {alice_.as.lock_id, LeaseKey::random()}; }
    /// Alice's key under another lock_id.
    [[nodiscard]] Credentials misplaced() const { return {LockId::random(), alice_.as.key}; }

    const Acquire alice_ = by_alice(name_, 30s);
    FencingToken token_{};
};

using RenewTest = HoldingTest;
using ReleaseTest = HoldingTest;
using CancelTest = HoldingTest;
using TransferTest = HoldingTest;

TEST_F(RenewTest, MovesTheExpiryAndKeepsTheToken) {
    elapse(10s);
    const Outcome outcome = granted(Renew{name_, alice_.as, lasting(60s)});
    EXPECT_EQ(outcome.lock.lease->token, token_);
    EXPECT_EQ(outcome.lock.lease->expires_at, now() + 60s);
    EXPECT_EQ(outcome.lock.lease->ttl, 60s);
    EXPECT_EQ(outcome.lock.lease->renewed_at, now());
    EXPECT_EQ(outcome.lock.lease->acquired_at, now() - 10s);
    EXPECT_EQ(outcome.lock.lease->renew_seq, 1U);
    EXPECT_EQ(outcome.lock, status());
    EXPECT_EQ(last_event().kind, EventKind::renewed);
    EXPECT_EQ(last_event().token, token_);
}

TEST_F(RenewTest, IsRefusedFromTheInstantOfExpiry) {
    elapse(30s - 1ms);
    granted(renewal(alice_));
    elapse(30s);
    expect_untouched(renewal(alice_), Errc::lock_expired);
}

TEST_F(RenewTest, IsRefusedWithoutTheKeyOrUnderAnotherLockId) {
    expect_untouched(Renew{name_, forged(), lasting(1s)}, Errc::lock_not_held);
    expect_untouched(Renew{name_, misplaced(), lasting(1s)}, Errc::lock_not_held);
    expect_untouched(Renew{name_, forged(), lasting(1s), Revive::yes}, Errc::lock_not_held);
}

TEST_F(RenewTest, OfAStolenLeaseIsRefusedAndTheAnswerNamesTheNewHolder) {
    elapse(31s);
    const Acquire bob = by_bob(name_);
    granted(bob);
    const Reply reply = apply(renewal(alice_));
    ASSERT_THAT(reply, RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(reply.error().holder->lease->lock_id, bob.as.lock_id);
    expect_untouched(renewal(alice_, Revive::yes), Errc::lock_not_held);
}

TEST_F(RenewTest, OfAFreeLockIsRefused) {
    granted(release(alice_));
    expect_untouched(renewal(alice_), Errc::lock_not_held);
    expect_untouched(renewal(alice_, Revive::yes), Errc::lock_not_held);
    EXPECT_THAT(apply(renewal(by_bob(lock("never/used")))), RefusedWith(Errc::lock_not_held));
}

TEST_F(RenewTest, NeverGoesBeyondTheLongestHold) {
    granted(release(alice_));
    Acquire bob = by_bob(name_, 30s);
    bob.max_hold = 60s;
    granted(bob);
    const Instant max_until = now() + 60s;
    elapse(20s);
    EXPECT_EQ(granted(renewal(bob)).lock.lease->expires_at, now() + 30s);
    elapse(25s);
    EXPECT_EQ(granted(renewal(bob)).lock.lease->expires_at, max_until);
    elapse(15s);
    expect_untouched(renewal(bob), Errc::lock_expired);
    expect_untouched(renewal(bob, Revive::yes), Errc::lock_expired);
}

TEST_F(RenewTest, ARevivedLeaseIsAlsoBoundByTheLongestHold) {
    granted(release(alice_));
    Acquire bob = by_bob(name_, 10s);
    bob.max_hold = 60s;
    granted(bob);
    const Instant max_until = now() + 60s;
    elapse(55s);
    EXPECT_EQ(granted(renewal(bob, Revive::yes)).lock.lease->expires_at, max_until);
}

TEST_F(RenewTest, RevivesAnExpiredLeaseThatNobodyTookWithItsToken) {
    elapse(1h);
    const Outcome outcome = granted(renewal(alice_, Revive::yes));
    EXPECT_EQ(outcome.lock.state, LockState::held);
    EXPECT_EQ(outcome.lock.lease->token, token_);
    EXPECT_EQ(outcome.lock.lease->expires_at, now() + 30s);
    EXPECT_EQ(last_event().kind, EventKind::revived);
}

TEST_F(RenewTest, AskedToReviveALiveLeaseRenewsIt) {
    granted(renewal(alice_, Revive::yes));
    EXPECT_EQ(last_event().kind, EventKind::renewed);
}

TEST_F(ReleaseTest, FreesTheLockAndKeepsTheToken) {
    const Outcome outcome = granted(release(alice_));
    EXPECT_EQ(outcome.lock.state, LockState::free);
    EXPECT_FALSE(outcome.lock.lease);
    EXPECT_EQ(outcome.lock.token, token_);
    EXPECT_EQ(record().ended, (kernel::Ended{alice_.as.lock_id, alice_.as.key.hash(), Ending::released}));
    EXPECT_EQ(last_event().kind, EventKind::released);
    EXPECT_EQ(last_event().lock_id, alice_.as.lock_id);
    EXPECT_EQ(last_event().holder, alice_.holder);
}

TEST_F(ReleaseTest, IsAllowedAfterExpiryWhileNobodyTookTheLock) {
    elapse(1h);
    EXPECT_EQ(granted(release(alice_)).lock.state, LockState::free);
}

TEST_F(ReleaseTest, MayBeRepeatedAndChangesNothingThen) {
    granted(release(alice_));
    const auto before = store_.shelf(name_);
    EXPECT_THAT(apply(release(alice_)), Granted());
    EXPECT_EQ(record(), before.record);
    EXPECT_EQ(store_.shelf(name_).events, before.events);
}

TEST_F(ReleaseTest, MayBeRepeatedAlsoWhenTheNextHolderIsThereAlready) {
    granted(release(alice_));
    const Acquire bob = by_bob(name_);
    granted(bob);
    const auto before = store_.shelf(name_);
    EXPECT_THAT(apply(release(alice_)), Granted());
    EXPECT_EQ(record(), before.record);
    EXPECT_EQ(status().lease->lock_id, bob.as.lock_id);
}

TEST_F(ReleaseTest, ByAnybodyElseIsRefused) {
    expect_untouched(Release{name_, forged()}, Errc::lock_not_held);
    expect_untouched(Release{name_, misplaced()}, Errc::lock_not_held);
    granted(release(alice_));
    expect_untouched(Release{name_, forged()}, Errc::lock_not_held);
    EXPECT_THAT(apply(release(by_bob(lock("never/used")))), RefusedWith(Errc::lock_not_held));
}

TEST_F(ReleaseTest, ComingLateNeverTouchesTheNewHolder) {
    elapse(31s);
    granted(by_bob(name_));
    expect_untouched(release(alice_), Errc::lock_not_held);
}

TEST_F(ReleaseTest, OfABrokenLeaseIsRefused) {
    granted(Break{name_, alice_.as.lock_id, "root", ""});
    expect_untouched(release(alice_), Errc::lock_not_held);
}

TEST_F(CancelTest, GivesBackAGrantThatCameFirst) {
    EXPECT_EQ(granted(cancel(alice_)).lock.state, LockState::free);
    EXPECT_EQ(last_event().kind, EventKind::released);
    EXPECT_EQ(record().ended->how, Ending::released);
}

TEST_F(CancelTest, RemovesTheTicketAndCountsItNoMore) {
    const Acquire bob = queued(by_bob(name_));
    apply(bob);
    apply(queued(by_carol(name_)));
    ASSERT_EQ(status().waiters, 2U);
    const kernel::Decision decision = store_.decide(cancel(bob));
    ASSERT_THAT(decision.reply, Granted());
    EXPECT_EQ(decision.reply->lock.waiters, 1U);
    EXPECT_FALSE(decision.record);
    EXPECT_EQ(status().waiters, 1U);
    EXPECT_EQ(store_.shelf(name_).tickets.front().holder.text, "carol");
}

TEST_F(CancelTest, OfNothingIsGrantedAndChangesNothing) {
    const auto before = record();
    EXPECT_THAT(apply(cancel(by_bob(name_))), Granted());
    EXPECT_EQ(record(), before);
}

TEST_F(CancelTest, WithoutTheKeyTakesNothingFromAnybody) {
    const Acquire bob = queued(by_bob(name_));
    apply(bob);
    const auto before = store_.shelf(name_);
    EXPECT_THAT(apply(Cancel{name_, {bob.as.lock_id, LeaseKey::random()}}), Granted());
    EXPECT_THAT(apply(Cancel{name_, forged()}), Granted());
    EXPECT_EQ(record(), before.record);
    EXPECT_EQ(store_.shelf(name_).tickets, before.tickets);
}

TEST_F(TransferTest, MovesTheLeaseWithANewTokenInOneStep) {
    elapse(5s);
    const Transfer request{name_, alice_.as, Holder{"bob", ""}, Credentials::random(), "shift change"};
    const Outcome outcome = granted(request);
    const Lease& lease = *outcome.lock.lease;
    EXPECT_EQ(lease.lock_id, request.to_as.lock_id);
    EXPECT_EQ(lease.holder.text, "bob");
    EXPECT_GT(lease.token, token_);
    EXPECT_EQ(lease.acquired_at, now());
    EXPECT_EQ(lease.renew_seq, 0U);
    EXPECT_EQ(lease.expires_at, now() + 25s) << "a transfer is no renewal";
    EXPECT_EQ(outcome.lock, status());
}

TEST_F(TransferTest, TellsTheAuditLogWhoGaveAndWhoTook) {
    const Transfer request{name_, alice_.as, Holder{"bob", ""}, Credentials::random(), "shift change"};
    granted(request);
    EXPECT_EQ(last_event().kind, EventKind::transferred);
    EXPECT_EQ(last_event().holder.text, "bob");
    EXPECT_EQ(last_event().actor, "alice");
    EXPECT_EQ(last_event().reason, "shift change");
    EXPECT_EQ(last_event().lock_id, request.to_as.lock_id);
    EXPECT_EQ(last_event().token, status().token);
    EXPECT_EQ(last_event().details.at("from_lock_id"), alice_.as.lock_id.text());
    EXPECT_EQ(last_event().details.at("from_token"), std::to_string(token_.value));
}

TEST_F(TransferTest, LeavesTheOldLeaseWorthless) {
    const Transfer request{name_, alice_.as, Holder{"bob", ""}, Credentials::random(), ""};
    granted(request);
    expect_untouched(renewal(alice_), Errc::lock_not_held);
    expect_untouched(release(alice_), Errc::lock_not_held);
    expect_untouched(alice_, Errc::lock_not_held);
    expect_untouched(check(name_, token_), Errc::fencing_mismatch);
    EXPECT_THAT(apply(Renew{name_, request.to_as, lasting(10s)}), Granted());
    EXPECT_THAT(apply(Release{name_, request.to_as}), Granted());
}

TEST_F(TransferTest, MayBeRepeatedAndKeepsTheToken) {
    const Transfer request{name_, alice_.as, Holder{"bob", ""}, Credentials::random(), ""};
    const FencingToken token = token_of(request);
    const auto before = store_.shelf(name_);
    EXPECT_EQ(token_of(request), token);
    EXPECT_EQ(record(), before.record);
    EXPECT_EQ(store_.shelf(name_).events, before.events);
}

TEST_F(TransferTest, OfAnExpiredLeaseIsRefused) {
    elapse(30s);
    expect_untouched(Transfer{name_, alice_.as, Holder{"bob", ""}, Credentials::random(), ""}, Errc::lock_expired);
}

TEST_F(TransferTest, ByAnybodyElseIsRefused) {
    expect_untouched(Transfer{name_, forged(), Holder{"bob", ""}, Credentials::random(), ""}, Errc::lock_not_held);
    expect_untouched(Transfer{name_, misplaced(), Holder{"bob", ""}, Credentials::random(), ""}, Errc::lock_not_held);
    granted(release(alice_));
    expect_untouched(Transfer{name_, alice_.as, Holder{"bob", ""}, Credentials::random(), ""}, Errc::lock_not_held);
}

TEST_F(TransferTest, NeverBringsBackALockIdThatWasUsed) {
    expect_untouched(Transfer{name_, alice_.as, Holder{"bob", ""}, {alice_.as.lock_id, LeaseKey::random()}, ""},
                     Errc::usage);
    const Credentials bob = Credentials::random();
    granted(Transfer{name_, alice_.as, Holder{"bob", ""}, bob, ""});
    expect_untouched(Transfer{name_, bob, Holder{"alice", ""}, alice_.as, ""}, Errc::usage);
}

TEST_F(TransferTest, KeepsTheLongestHold) {
    granted(release(alice_));
    Acquire bob = by_bob(name_, 30s);
    bob.max_hold = 40s;
    granted(bob);
    const Instant max_until = now() + 40s;
    const Credentials carol = Credentials::random();
    granted(Transfer{name_, bob.as, Holder{"carol", ""}, carol, ""});
    elapse(20s);
    EXPECT_EQ(granted(Renew{name_, carol, lasting(30s)}).lock.lease->expires_at, max_until);
}

TEST_F(TransferTest, TakesTheNewHolderOutOfTheQueue) {
    const Acquire bob = queued(by_bob(name_));
    apply(bob);
    const Outcome outcome = granted(Transfer{name_, alice_.as, bob.holder, bob.as, ""});
    EXPECT_EQ(outcome.lock.waiters, 0U);
    EXPECT_TRUE(store_.shelf(name_).tickets.empty());
}

}  // namespace
}  // namespace holdfast::tests
