// Break: an operator takes away exactly what was seen. Check: is this token still the one that counts?

#include "kernel/little_store.hpp"

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class BreakTest : public KernelTest {
protected:
    [[nodiscard]] Break breaking(const LockId& expected) const { return {name_, expected, "root@ops", "stuck job"}; }
};
class CheckTest : public KernelTest {};

TEST_F(BreakTest, FreesTheLockAndSpendsAToken) {
    const Acquire alice = by_alice(name_);
    const FencingToken token = token_of(alice);
    const Outcome outcome = granted(breaking(alice.as.lock_id));
    EXPECT_EQ(outcome.lock.state, LockState::free);
    EXPECT_GT(outcome.lock.token, token);
    EXPECT_EQ(outcome.lock, status());

    // Without time passing, so that the clock in the token cannot hide a missing step.
    EXPECT_GT(token_of(by_bob(name_)), outcome.lock.token);
}

TEST_F(BreakTest, TellsTheAuditLogWhoBrokeWhatOfWhom) {
    const Acquire alice = by_alice(name_);
    const FencingToken token = token_of(alice);
    granted(breaking(alice.as.lock_id));
    EXPECT_EQ(last_event().kind, EventKind::broken);
    EXPECT_EQ(last_event().actor, "root@ops");
    EXPECT_EQ(last_event().reason, "stuck job");
    EXPECT_EQ(last_event().holder, alice.holder);
    EXPECT_EQ(last_event().lock_id, alice.as.lock_id);
    EXPECT_EQ(last_event().token, status().token);
    EXPECT_EQ(last_event().details.at("from_holder"), "alice");
    EXPECT_EQ(last_event().details.at("from_lock_id"), alice.as.lock_id.text());
    EXPECT_EQ(last_event().details.at("from_token"), std::to_string(token.value));
}

TEST_F(BreakTest, NeverTouchesALeaseThatTheOperatorDidNotSee) {
    const Acquire alice = by_alice(name_, 1s);
    granted(alice);
    elapse(2s);
    const Acquire bob = by_bob(name_);
    granted(bob);
    const Reply reply = apply(breaking(alice.as.lock_id));
    ASSERT_THAT(reply, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(reply.error().holder->lease->lock_id, bob.as.lock_id);
    expect_untouched(breaking(alice.as.lock_id), Errc::lock_conflict);
}

TEST_F(BreakTest, OfAFreeLockIsRefused) {
    expect_untouched(breaking(LockId::random()), Errc::lock_not_held);
    const Acquire alice = by_alice(name_);
    granted(alice);
    granted(release(alice));
    expect_untouched(breaking(alice.as.lock_id), Errc::lock_not_held);
}

TEST_F(BreakTest, AlsoClearsAnExpiredLease) {
    const Acquire alice = by_alice(name_, 1s);
    granted(alice);
    elapse(1h);
    EXPECT_EQ(granted(breaking(alice.as.lock_id)).lock.state, LockState::free);
    expect_untouched(renewal(alice, Revive::yes), Errc::lock_not_held);
}

TEST_F(BreakTest, KeepsTheQueueInItsOrder) {
    const Acquire alice = by_alice(name_);
    granted(alice);
    const Acquire bob = queued(by_bob(name_));
    apply(bob);
    granted(breaking(alice.as.lock_id));
    expect_untouched(by_carol(name_), Errc::lock_conflict);
    EXPECT_THAT(apply(bob), Granted());
}

TEST_F(CheckTest, GrantsTheCurrentTokenAndChangesNothing) {
    const Acquire alice = by_alice(name_, 30s);
    const FencingToken token = token_of(alice);
    const auto before = store_.shelf(name_);
    EXPECT_THAT(apply(check(name_, token)), Granted());
    EXPECT_THAT(apply(Check{name_, token, alice.as.lock_id, {}}), Granted());
    EXPECT_EQ(record(), before.record);
    EXPECT_EQ(store_.shelf(name_).events, before.events);
}

TEST_F(CheckTest, RefusesAnyOtherToken) {
    const FencingToken token = token_of(by_alice(name_));
    expect_untouched(check(name_, FencingToken{token.value - 1}), Errc::fencing_mismatch);
    expect_untouched(check(name_, FencingToken{token.value + 1}), Errc::fencing_mismatch);
    expect_untouched(check(name_, FencingToken{0}), Errc::fencing_mismatch);
}

TEST_F(CheckTest, RefusesTheRightTokenUnderAnotherLockId) {
    const FencingToken token = token_of(by_alice(name_));
    expect_untouched(Check{name_, token, LockId::random(), {}}, Errc::fencing_mismatch);
}

TEST_F(CheckTest, RefusesTheTokenOfALeaseThatRanOut) {
    const FencingToken token = token_of(by_alice(name_, 30s));
    elapse(30s - 1ms);
    EXPECT_THAT(apply(check(name_, token)), Granted());
    elapse(1ms);
    expect_untouched(check(name_, token), Errc::lock_expired);
    expect_untouched(check(name_, FencingToken{token.value - 1}), Errc::fencing_mismatch);
}

TEST_F(CheckTest, TellsAReleasedTokenFromAStaleOne) {
    const Acquire alice = by_alice(name_);
    const FencingToken token = token_of(alice);
    granted(release(alice));
    expect_untouched(check(name_, token), Errc::lock_not_held);
    expect_untouched(check(name_, FencingToken{token.value - 1}), Errc::fencing_mismatch);
}

TEST_F(CheckTest, RefusesTheTokenOfABrokenLease) {
    const Acquire alice = by_alice(name_);
    const FencingToken token = token_of(alice);
    granted(Break{name_, alice.as.lock_id, "root", ""});
    expect_untouched(check(name_, token), Errc::fencing_mismatch);
}

TEST_F(CheckTest, RefusesEverythingOnALockThatWasNeverUsed) {
    expect_untouched(check(name_, FencingToken{0}), Errc::lock_not_held);
    expect_untouched(check(name_, FencingToken{7}), Errc::lock_not_held);
}

TEST_F(CheckTest, IsRefusedWhileAnExcludingLockIsHeld) {
    const FencingToken token = token_of(by_alice(name_));
    granted(by_bob(lock("deploy/freeze"), 10s));
    const Check request{name_, token, std::nullopt, {lock("deploy/freeze")}};
    const Reply reply = apply(request);
    ASSERT_THAT(reply, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(reply.error().holder->name, lock("deploy/freeze"));
    elapse(10s);
    EXPECT_THAT(apply(request), Granted());
}

}  // namespace
}  // namespace holdfast::tests
