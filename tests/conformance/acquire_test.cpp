// Which request is granted a lock, which is refused, and the token of a grant.
#include "conformance/store_conformance.hpp"

namespace holdfast::tests {

using namespace std::chrono_literals;

TEST_P(StoreConformance, AFreeLockIsGrantedWithEverythingTheRequestSaid) {
    Acquire request = by_alice(lock("migrate/prod"), 30s);
    request.holder.user = "Alice A.";
    request.operation = "migrate up";
    request.reason = "release 12";
    request.meta = {{"build", "77"}, {"", "empty key"}, {"naïve", "ünïcode\nline"}};

    const Outcome outcome = granted(request);

    Lease expected;
    expected.lock_id = request.as.lock_id;
    expected.token = outcome.lock.token;
    expected.holder = request.holder;
    expected.operation = "migrate up";
    expected.reason = "release 12";
    expected.ttl = 30s;
    expected.acquired_at = expected.renewed_at = now();
    expected.expires_at = now() + 30s;
    expected.meta = request.meta;
    EXPECT_EQ(outcome.lock.lease, expected);
    EXPECT_EQ(outcome.lock.state, LockState::held);
    EXPECT_EQ(outcome.lock.seq, 1U);
    EXPECT_FALSE(outcome.stolen_from);
    EXPECT_EQ(inspect(request.name), outcome.lock);
}

TEST_P(StoreConformance, AHeldLockIsRefusedNamingItsHolder) {
    const Acquire alice = by_alice(lock("x"), 30s);
    granted(alice);
    elapse(6s);

    const Reply refused = apply(by_bob(lock("x")));

    ASSERT_THAT(refused, RefusedWith(Errc::lock_conflict));
    ASSERT_TRUE(refused.error().holder);
    EXPECT_EQ(refused.error().holder->lease->lock_id, alice.as.lock_id);
    EXPECT_EQ(refused.error().holder->lease->holder, alice.holder);
    EXPECT_EQ(refused.error().retry_after, 24s);
    EXPECT_EQ(kinds(lock("x")), std::vector{EventKind::acquired});
}

TEST_P(StoreConformance, ALeaseHoldsUntilItsLastMillisecondAndNotLonger) {
    granted(by_alice(lock("x"), 1s));
    elapse(999ms);
    EXPECT_THAT(apply(by_bob(lock("x"))), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(inspect(lock("x")).state, LockState::held);
    elapse(1ms);
    EXPECT_EQ(inspect(lock("x")).state, LockState::expired);
    EXPECT_THAT(apply(by_bob(lock("x"))), Granted());
}

TEST_P(StoreConformance, AStealRaisesTheTokenAndNamesThePreviousHolder) {
    const Acquire alice = by_alice(lock("x"), 200ms);
    const Outcome first = granted(alice);
    const Instant expired_at = now() + 200ms;
    elapse(300ms);

    const Outcome second = granted(by_bob(lock("x")));

    EXPECT_GT(second.lock.token, first.lock.token);
    EXPECT_EQ(second.stolen_from, (StolenFrom{alice.as.lock_id, first.lock.token, alice.holder, expired_at}));
    EXPECT_EQ(kinds(lock("x")), (std::vector{EventKind::acquired, EventKind::stolen}));
    EXPECT_EQ(history(lock("x")).back().details.at("from_holder"), "alice");
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, TokensRiseAcrossAThousandGrantsAndReopening) {
    FencingToken highest{};
    for (int round = 0; round < 1000; ++round) {
        const Acquire alice = by_alice(lock("x"));
        const Outcome outcome = granted(alice);
        ASSERT_GT(outcome.lock.token, highest) << "round " << round;
        highest = outcome.lock.token;
        granted(release(alice));
        if (properties().is_shared && round % 250 == 100) must(harness().reopen());
    }
    EXPECT_EQ(inspect(lock("x")).token, highest) << "the token stays known while the lock is free";
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, TheClockIsPartOfTheTokenSoThatItRisesAcrossAWipe) {
    const Outcome outcome = granted(by_alice(lock("x")));
    EXPECT_GE(outcome.lock.token.value, static_cast<std::uint64_t>(now().time_since_epoch().count()));
}

TEST_P(StoreConformance, RepeatingAnAcquireGivesTheSameTokenAndCountsTheTimeAfresh) {
    const Acquire alice = by_alice(lock("x"), 10s);
    const Outcome first = granted(alice);
    elapse(4s);

    const Outcome repeated = granted(alice);

    EXPECT_EQ(repeated.lock.token, first.lock.token);
    EXPECT_EQ(repeated.lock.lease->lock_id, alice.as.lock_id);
    EXPECT_EQ(repeated.lock.lease->expires_at, now() + 10s);
}

TEST_P(StoreConformance, ALockIdWithoutItsKeyIsNobody) {
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    Acquire thief = by_bob(lock("x"));
    thief.as.lock_id = alice.as.lock_id;

    EXPECT_THAT(apply(thief), RefusedWith(Errc::denied));
    EXPECT_THAT(apply(renewal(thief)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(release(thief)), RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(inspect(lock("x")).lease->holder, alice.holder);
}

TEST_P(StoreConformance, ALateDuplicateOfAnAcquireThatEndedGrantsNothing) {
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    granted(release(alice));
    EXPECT_THAT(apply(alice), RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(inspect(lock("x")).state, LockState::free);
}

TEST_P(StoreConformance, RepeatingAnAcquireAfterItsLeaseRanOutIsRefused) {
    const Acquire alice = by_alice(lock("x"), 1s);
    granted(alice);
    elapse(2s);
    EXPECT_THAT(apply(alice), RefusedWith(Errc::lock_expired));
}

TEST_P(StoreConformance, ARequestBeyondTheLimitsIsRefusedAndChangesNothing) {
    Acquire nobody = by("", lock("x"), 1s);
    EXPECT_THAT(apply(nobody), RefusedWith(Errc::usage));
    Acquire itself = by_alice(lock("x"));
    itself.unless_held = {lock("x")};
    EXPECT_THAT(apply(itself), RefusedWith(Errc::usage));
    EXPECT_EQ(inspect(lock("x")).seq, 0U);
}

TEST_P(StoreConformance, AnExcludingLockKeepsOthersOutOnlyWhileItIsHeld) {
    const Acquire alice = by_alice(lock("deploy"), 1s);
    granted(alice);
    Acquire bob = by_bob(lock("migrate"));
    bob.unless_held = {lock("never-used"), lock("deploy")};

    const Reply refused = apply(bob);
    ASSERT_THAT(refused, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(refused.error().holder->name, lock("deploy"));
    EXPECT_EQ(inspect(lock("migrate")).seq, 0U);
    EXPECT_EQ(inspect(lock("never-used")).seq, 0U);

    elapse(1s);
    EXPECT_THAT(apply(bob), Granted()) << "an expired lease excludes nobody";
}

TEST_P(StoreConformance, ACheckAcceptsTheCurrentTokenAlone) {
    EXPECT_THAT(apply(check(lock("x"), {7})), RefusedWith(Errc::lock_not_held));
    const Acquire alice = by_alice(lock("x"), 1s);
    const FencingToken first = granted(alice).lock.token;
    EXPECT_THAT(apply(check(lock("x"), first)), Granted());
    EXPECT_THAT(apply(check(lock("x"), {first.value - 1})), RefusedWith(Errc::fencing_mismatch));
    EXPECT_THAT(apply(check(lock("x"), {first.value + 1})), RefusedWith(Errc::fencing_mismatch));
    EXPECT_THAT(apply(Check{.name = lock("x"), .token = first, .lock_id = LockId::random()}),
                RefusedWith(Errc::fencing_mismatch));

    elapse(2s);
    EXPECT_THAT(apply(check(lock("x"), first)), RefusedWith(Errc::lock_expired));

    const FencingToken second = granted(by_bob(lock("x"))).lock.token;
    EXPECT_THAT(apply(check(lock("x"), first)), RefusedWith(Errc::fencing_mismatch));
    EXPECT_THAT(apply(check(lock("x"), second)), Granted());
    EXPECT_EQ(inspect(lock("x")).seq, 2U) << "a check writes nothing";
}

TEST_P(StoreConformance, ACheckOfAReleasedLockIsNotHeld) {
    const Acquire alice = by_alice(lock("x"));
    const FencingToken token = granted(alice).lock.token;
    granted(release(alice));
    EXPECT_THAT(apply(check(lock("x"), token)), RefusedWith(Errc::lock_not_held));
}

TEST_P(StoreConformance, ACheckIsRefusedWhileAnExcludingLockIsHeld) {
    const FencingToken token = granted(by_alice(lock("x"))).lock.token;
    Check request = check(lock("x"), token);
    request.unless_held = {lock("freeze")};
    EXPECT_THAT(apply(request), Granted());
    granted(by_bob(lock("freeze")));
    EXPECT_THAT(apply(request), RefusedWith(Errc::lock_conflict));
}

}  // namespace holdfast::tests
