// Acquire: what it grants, what it refuses, and what a repeat of it means.

#include "kernel/little_store.hpp"

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using kernel::Ending;

class AcquireTest : public KernelTest {};

TEST_F(AcquireTest, AFreeLockIsGrantedWithEverythingTheCallerSaid) {
    Acquire request = by_alice(name_, 30s);
    request.holder.user = "alice@example.org";
    request.operation = "migrate up";
    request.reason = "release 7";
    request.max_hold = 2h;
    request.meta = {{"pipeline", "812"}};
    const Outcome outcome = granted(request);

    Lease expected;
    expected.lock_id = request.as.lock_id;
    expected.token = outcome.lock.token;
    expected.holder = request.holder;
    expected.operation = "migrate up";
    expected.reason = "release 7";
    expected.ttl = 30s;
    expected.acquired_at = expected.renewed_at = now();
    expected.expires_at = now() + 30s;
    expected.max_until = now() + 2h;
    expected.meta = {{"pipeline", "812"}};
    EXPECT_EQ(outcome.lock.lease, expected);
    EXPECT_EQ(outcome.lock.state, LockState::held);
    EXPECT_EQ(outcome.lock.as_of, now());
    EXPECT_FALSE(outcome.stolen_from);
    EXPECT_EQ(outcome.lock, status());
}

TEST_F(AcquireTest, TheSecretIsKeptOnlyAsItsHash) {
    const Acquire request = by_alice(name_);
    granted(request);
    EXPECT_EQ(record().held->key_hash, request.as.key.hash());
}

TEST_F(AcquireTest, AHeldLockIsRefusedAndTheAnswerNamesTheHolder) {
    const Acquire alice = by_alice(name_, 30s);
    granted(alice);
    elapse(6s);
    const Reply reply = apply(by_bob(name_));
    ASSERT_THAT(reply, RefusedWith(Errc::lock_conflict));
    ASSERT_TRUE(reply.error().holder);
    EXPECT_EQ(reply.error().holder->lease->holder, alice.holder);
    EXPECT_EQ(reply.error().holder->lease->lock_id, alice.as.lock_id);
    EXPECT_EQ(reply.error().retry_after, 24s);
    expect_untouched(by_bob(name_), Errc::lock_conflict);
}

TEST_F(AcquireTest, ALeaseLivesUntilTheMillisecondBeforeItsExpiry) {
    granted(by_alice(name_, 30s));
    elapse(30s - 1ms);
    expect_untouched(by_bob(name_), Errc::lock_conflict);
    elapse(1ms);
    EXPECT_THAT(apply(by_bob(name_)), Granted());
}

TEST_F(AcquireTest, AnExpiredLockIsStolenAndTheAnswerNamesTheVictim) {
    const Acquire alice = by_alice(name_, 30s);
    const FencingToken old_token = token_of(alice);
    const Instant expired_at = now() + 30s;
    elapse(31s);
    const Acquire bob = by_bob(name_);
    const Outcome outcome = granted(bob);

    EXPECT_EQ(outcome.stolen_from, (StolenFrom{alice.as.lock_id, old_token, alice.holder, expired_at}));
    EXPECT_GT(outcome.lock.lease->token, old_token);
    EXPECT_EQ(outcome.lock.lease->lock_id, bob.as.lock_id);
    EXPECT_EQ(record().ended, (kernel::Ended{alice.as.lock_id, alice.as.key.hash(), Ending::stolen}));
}

TEST_F(AcquireTest, AStealTellsTheAuditLogFromWhom) {
    const Acquire alice = by_alice(name_, 30s);
    const FencingToken old_token = token_of(alice);
    elapse(31s);
    const Acquire bob = by_bob(name_, 5s);
    granted(bob);
    EXPECT_EQ(last_event().kind, EventKind::stolen);
    EXPECT_EQ(last_event().holder, bob.holder);
    EXPECT_EQ(last_event().lock_id, bob.as.lock_id);
    const std::map<std::string, std::string> details{{"expired_at", "2023-11-14T22:13:50.000Z"},
                                                     {"from_holder", "alice"},
                                                     {"from_lock_id", alice.as.lock_id.text()},
                                                     {"from_token", std::to_string(old_token.value)},
                                                     {"ttl_ms", "5000"}};
    EXPECT_EQ(last_event().details, details);
}

TEST_F(AcquireTest, OnlyOneOfTwoStealersWins) {
    granted(by_alice(name_, 1s));
    elapse(2s);
    granted(by_bob(name_));
    expect_untouched(by_carol(name_), Errc::lock_conflict);
}

Acquire take_over(const LockName& name, const LockStatus& seen, std::chrono::milliseconds after) {
    Acquire request = by_bob(name);
    request.takes_over = StaleLease{seen.lease->lock_id, seen.lease->renew_seq, after};
    return request;
}

TEST_F(AcquireTest, AStaleLeaseIsTakenOverWhileItLivesAndNotAMillisecondBefore) {
    const Acquire alice = by_alice(name_, 30min);
    const FencingToken old_token = token_of(alice);
    const Instant renewed_at = now();
    const LockStatus seen = status();
    elapse(10min - 1ms);
    const Reply early = apply(take_over(name_, seen, 10min));
    ASSERT_THAT(early, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(early.error().retry_after, 1ms);
    elapse(1ms);
    const Outcome taken = granted(take_over(name_, seen, 10min));

    EXPECT_EQ(taken.stolen_from, (StolenFrom{alice.as.lock_id, old_token, alice.holder, now()}));
    EXPECT_GT(taken.lock.token, old_token);
    EXPECT_EQ(last_event().kind, EventKind::stolen);
    EXPECT_EQ(last_event().details.at("stale_since"), to_rfc3339(renewed_at));
    EXPECT_EQ(last_event().details.at("expired_at"), to_rfc3339(now()));
    EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::lock_not_held));
}

TEST_F(AcquireTest, ARenewalThatWasNotSeenProtectsAnOtherwiseStaleLease) {
    const Acquire alice = by_alice(name_, 30min);
    granted(alice);
    const LockStatus seen = status();
    elapse(10min);
    granted(renewal(alice));
    elapse(11min);
    EXPECT_THAT(apply(take_over(name_, seen, 10min)), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(apply(take_over(name_, status(), 10min)), Granted());
}

TEST_F(AcquireTest, ATakeOverEndsNoOtherLeaseThanTheOneThatWasSeen) {
    granted(by_alice(name_, 1s));
    const LockStatus seen = status();
    elapse(2s);
    granted(by_carol(name_, 30min));
    elapse(20min);
    expect_untouched(take_over(name_, seen, 10min), Errc::lock_conflict);
}

TEST_F(AcquireTest, ATakeOverComesAfterTheWaitersAndTheLocksThatExcludeIt) {
    granted(by_alice(name_, 30min));
    const LockStatus seen = status();
    elapse(20min);
    Acquire waiter = by_carol(name_);
    waiter.ticket = lasting(1min);
    EXPECT_THAT(apply(waiter), RefusedWith(Errc::lock_conflict));
    expect_untouched(take_over(name_, seen, 10min), Errc::lock_conflict);
    EXPECT_THAT(apply(Cancel{name_, waiter.as}), Granted());

    const Acquire propagation = by_carol(lock("propagation"), 1min);
    granted(propagation);
    Acquire excluded = take_over(name_, seen, 10min);
    excluded.unless_held = {propagation.name};
    EXPECT_THAT(apply(excluded), RefusedWith(Errc::lock_conflict));
    granted(Release{propagation.name, propagation.as});
    EXPECT_THAT(apply(excluded), Granted());
}

TEST_F(AcquireTest, ATakeOverOfALeaseThatRanOutIsAnOrdinarySteal) {
    granted(by_alice(name_, 1s));
    const LockStatus seen = status();
    elapse(2s);
    granted(take_over(name_, seen, 10min));
    EXPECT_EQ(last_event().kind, EventKind::stolen);
    EXPECT_FALSE(last_event().details.contains("stale_since"));
}

TEST_F(AcquireTest, ATakeOverNeedsATimeAndDoesNotWait) {
    granted(by_alice(name_));
    expect_untouched(take_over(name_, status(), 0ms), Errc::usage);
    Acquire waiting = take_over(name_, status(), 10min);
    waiting.ticket = lasting(1min);
    expect_untouched(waiting, Errc::usage);
}

TEST_F(AcquireTest, ARepeatGivesTheSameTokenAndRenews) {
    const Acquire request = by_alice(name_, 30s);
    const FencingToken token = token_of(request);
    elapse(20s);
    const Outcome again = granted(request);
    EXPECT_EQ(again.lock.lease->token, token);
    EXPECT_EQ(again.lock.token, token);
    EXPECT_EQ(again.lock.lease->expires_at, now() + 30s);
    EXPECT_EQ(again.lock.lease->acquired_at, now() - 20s);
    EXPECT_EQ(again.lock.lease->renew_seq, 1U);
    EXPECT_FALSE(again.stolen_from);
    EXPECT_EQ(last_event().kind, EventKind::renewed);
}

TEST_F(AcquireTest, ARepeatDoesNotExtendTheLongestHold) {
    Acquire request = by_alice(name_, 30s);
    request.max_hold = 40s;
    granted(request);
    const Instant max_until = now() + 40s;
    elapse(20s);
    EXPECT_EQ(granted(request).lock.lease->expires_at, max_until);
    EXPECT_EQ(status().lease->max_until, max_until);
}

TEST_F(AcquireTest, ARepeatAfterExpiryIsRefused) {
    const Acquire request = by_alice(name_, 30s);
    granted(request);
    elapse(30s);
    expect_untouched(request, Errc::lock_expired);
}

TEST_F(AcquireTest, TheLockIdOfALiveLeaseIsWorthNothingWithoutItsKey) {
    const Acquire alice = by_alice(name_);
    granted(alice);
    Acquire forged = by_bob(name_);
    forged.as.lock_id = alice.as.lock_id;
    expect_untouched(forged, Errc::denied);
    elapse(1h);
    expect_untouched(forged, Errc::denied);
}

TEST_F(AcquireTest, AReleasedLockIdIsNeverGrantedAgain) {
    const Acquire request = by_alice(name_);
    granted(request);
    granted(release(request));
    expect_untouched(request, Errc::lock_not_held);
}

TEST_F(AcquireTest, AStolenLockIdIsNeverGrantedAgain) {
    const Acquire alice = by_alice(name_, 1s);
    granted(alice);
    elapse(2s);
    const Acquire bob = by_bob(name_, 1s);
    granted(bob);
    expect_untouched(alice, Errc::lock_not_held);
    elapse(2s);
    expect_untouched(alice, Errc::lock_not_held);
}

TEST_F(AcquireTest, ABrokenLockIdIsNeverGrantedAgain) {
    const Acquire alice = by_alice(name_);
    granted(alice);
    granted(Break{name_, alice.as.lock_id, "root", "stuck"});
    expect_untouched(alice, Errc::lock_not_held);
}

TEST_F(AcquireTest, ALongestHoldShorterThanTheTtlEndsTheLeaseEarlier) {
    Acquire request = by_alice(name_, 30s);
    request.max_hold = 10s;
    EXPECT_EQ(granted(request).lock.lease->expires_at, now() + 10s);
    elapse(10s);
    EXPECT_THAT(apply(by_bob(name_)), Granted());
}

TEST_F(AcquireTest, ALiveExcludingLockRefusesAndIsNamed) {
    const Acquire other = by_bob(lock("deploy/freeze"), 10s);
    granted(other);
    Acquire request = by_alice(name_);
    request.unless_held = {lock("never/used"), other.name};
    const Reply reply = apply(request);
    ASSERT_THAT(reply, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(reply.error().holder->name, other.name);
    EXPECT_EQ(reply.error().retry_after, 10s);
    expect_untouched(request, Errc::lock_conflict);
}

TEST_F(AcquireTest, AnExpiredOrReleasedExcludingLockDoesNotRefuse) {
    const Acquire other = by_bob(lock("deploy/freeze"), 10s);
    granted(other);
    Acquire request = by_alice(name_, 1s);
    request.unless_held = {other.name};
    elapse(10s);
    EXPECT_THAT(apply(request), Granted());

    granted(release(request));
    granted(release(other));
    request.as = Credentials::random();
    EXPECT_THAT(apply(request), Granted());
}

TEST_F(AcquireTest, AnExcludingLockAlsoKeepsAnExpiredLeaseFromBeingStolen) {
    granted(by_alice(name_, 1s));
    granted(by_bob(lock("deploy/freeze"), 1h));
    elapse(2s);
    Acquire request = by_carol(name_);
    request.unless_held = {lock("deploy/freeze")};
    expect_untouched(request, Errc::lock_conflict);
}

TEST_F(AcquireTest, LocksAreStrangersToEachOther) {
    granted(by_alice(name_));
    for (const char* other : {"migrate/prod ", "migrate/Prod", "migrate", "migrate/prod/x"})
        EXPECT_THAT(apply(by_bob(lock(other))), Granted()) << other;
}

}  // namespace
}  // namespace holdfast::tests
