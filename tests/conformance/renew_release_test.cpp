// Holding on and letting go, in time and too late.
#include "conformance/store_conformance.hpp"

namespace holdfast::tests {

using namespace std::chrono_literals;

TEST_P(StoreConformance, ARenewalExtendsTheLeaseUnderItsToken) {
    const Acquire alice = by_alice(lock("x"), 1s);
    const Outcome first = granted(alice);
    elapse(900ms);

    const Outcome renewed = granted(Renew{alice.name, alice.as, lasting(5s)});

    EXPECT_EQ(renewed.lock.token, first.lock.token);
    EXPECT_EQ(renewed.lock.lease->renew_seq, 1U);
    EXPECT_EQ(renewed.lock.lease->renewed_at, now());
    EXPECT_EQ(renewed.lock.lease->acquired_at, first.lock.lease->acquired_at);
    EXPECT_EQ(renewed.lock.lease->expires_at, now() + 5s);
    EXPECT_EQ(kinds(lock("x")), (std::vector{EventKind::acquired, EventKind::renewed}));
}

TEST_P(StoreConformance, ARenewalReplacesWhatTheLeaseShowsOnlyIfItSaysSo) {
    const auto alice = by_alice(lock("x"), 5s);
    granted(alice);
    const std::map<std::string, std::string> meta{{"value", "10.0.0.7:80"}, {"naïve", "ünïcode\nline"}};
    Renew renewal{alice.name, alice.as, lasting(5s)};
    renewal.meta = meta;
    EXPECT_EQ(granted(renewal).lock.lease->meta, meta);
    EXPECT_EQ(granted(Renew{alice.name, alice.as, lasting(5s)}).lock.lease->meta, meta);
    EXPECT_EQ(inspect(alice.name).lease->meta, meta);
    renewal.meta = {{{"value", std::string(5000, 'x')}}};
    EXPECT_THAT(apply(renewal), RefusedWith(Errc::usage));
    renewal.meta.emplace();
    EXPECT_EQ(granted(renewal).lock.lease->meta, (std::map<std::string, std::string>{}));
}

// A holder paused past its ttl cannot know whether somebody came and went in between, so the answer must
// be the same whether or not anybody did.
TEST_P(StoreConformance, ARenewalAfterExpiryIsRefused) {
    const Acquire alice = by_alice(lock("x"), 200ms);
    granted(alice);
    elapse(300ms);
    EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::lock_expired));
    EXPECT_EQ(inspect(lock("x")).state, LockState::expired);
}

TEST_P(StoreConformance, RevivingBringsBackALeaseThatNobodyTook) {
    const Acquire alice = by_alice(lock("x"), 200ms);
    const FencingToken token = granted(alice).lock.token;
    elapse(300ms);

    const Outcome revived = granted(renewal(alice, Revive::yes));

    EXPECT_EQ(revived.lock.token, token);
    EXPECT_EQ(revived.lock.state, LockState::held);
    EXPECT_EQ(kinds(lock("x")).back(), EventKind::revived);
}

TEST_P(StoreConformance, RevivingNeverTouchesTheNextHolder) {
    const Acquire alice = by_alice(lock("x"), 200ms);
    granted(alice);
    elapse(300ms);
    const Acquire bob = by_bob(lock("x"));
    const Outcome taken = granted(bob);

    EXPECT_THAT(apply(renewal(alice, Revive::yes)), RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(inspect(lock("x")), taken.lock);
}

TEST_P(StoreConformance, ALateRenewalOrReleaseNeverTouchesTheNextHolder) {
    const Acquire alice = by_alice(lock("x"), 200ms);
    granted(alice);
    elapse(300ms);
    const Outcome taken = granted(by_bob(lock("x")));

    EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(release(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(cancel(alice)), Granted()) << "a cancel is never refused, and takes only what is its own";
    EXPECT_THAT(apply(alice), RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(inspect(lock("x")), taken.lock);
}

TEST_P(StoreConformance, NoRenewalGoesBeyondTheLongestHold) {
    Acquire alice = by_alice(lock("x"), 1s);
    alice.max_hold = 2500ms;
    const Instant until = now() + 2500ms;
    EXPECT_EQ(granted(alice).lock.lease->max_until, until);
    for (int renewals = 0; renewals < 3; ++renewals) {
        elapse(800ms);
        EXPECT_LE(granted(renewal(alice)).lock.lease->expires_at, until);
    }
    EXPECT_EQ(inspect(lock("x")).lease->expires_at, until);
    elapse(100ms);
    EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::lock_expired));
    EXPECT_THAT(apply(renewal(alice, Revive::yes)), RefusedWith(Errc::lock_expired));
    EXPECT_THAT(apply(by_bob(lock("x"))), Granted());
}

TEST_P(StoreConformance, AReleasedLockIsFreeAndKeepsItsToken) {
    const Acquire alice = by_alice(lock("x"));
    const FencingToken token = granted(alice).lock.token;

    const Outcome released = granted(release(alice));

    EXPECT_EQ(released.lock.state, LockState::free);
    EXPECT_FALSE(released.lock.lease);
    EXPECT_EQ(released.lock.token, token);
    EXPECT_EQ(inspect(lock("x")), released.lock);
    EXPECT_THAT(apply(by_bob(lock("x"))), Granted());
}

TEST_P(StoreConformance, RepeatingAReleaseIsHarmlessAndWritesNoEvent) {
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    granted(release(alice));
    EXPECT_THAT(apply(release(alice)), Granted());
    EXPECT_EQ(inspect(lock("x")).seq, 2U);
    const Outcome taken = granted(by_bob(lock("x")));
    EXPECT_THAT(apply(release(alice)), Granted()) << "the answer does not depend on who came in the meantime";
    EXPECT_EQ(inspect(lock("x")), taken.lock);
}

TEST_P(StoreConformance, AnExpiredLeaseThatNobodyTookCanBeReleased) {
    const Acquire alice = by_alice(lock("x"), 200ms);
    granted(alice);
    elapse(1h);
    EXPECT_THAT(apply(release(alice)), Granted());
    EXPECT_EQ(inspect(lock("x")).state, LockState::free);
}

TEST_P(StoreConformance, ALockThatWasNeverUsedCannotBeRenewedOrReleased) {
    const Acquire alice = by_alice(lock("x"));
    EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(release(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(inspect(lock("x")).seq, 0U);
}

}  // namespace holdfast::tests
