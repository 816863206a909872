// Expire: the end of a lease that ran out is announced once, and changes nothing for the next holder.

#include "kernel/little_store.hpp"
#include "kernel/rebase.hpp"

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class ExpireTest : public KernelTest {
protected:
    void SetUp() override { token_ = token_of(alice_); }

    [[nodiscard]] const std::vector<AuditEvent>& events() { return store_.shelf(name_).events; }
    [[nodiscard]] std::vector<EventKind> kinds() {
        std::vector<EventKind> found;
        for (const AuditEvent& event : events()) found.push_back(event.kind);
        return found;
    }
    /// Alice's lease has run out, and that was announced.
    void announce() {
        elapse(30s);
        granted(expiry(alice_));
    }

    const Acquire alice_ = by_alice(name_, 30s);
    const Acquire bob_ = by_bob(name_, 30s);
    FencingToken token_{};
};

TEST_F(ExpireTest, AnnouncesALeaseThatRanOutAndKeepsItAndItsToken) {
    elapse(31s);
    const Outcome outcome = granted(expiry(alice_));
    EXPECT_EQ(outcome.lock.state, LockState::expired);
    EXPECT_EQ(outcome.lock.lease->lock_id, alice_.as.lock_id);
    EXPECT_EQ(outcome.lock.token, token_);
    EXPECT_FALSE(outcome.stolen_from);
    EXPECT_EQ(last_event().kind, EventKind::expired);
    EXPECT_EQ(last_event().lock_id, alice_.as.lock_id);
    EXPECT_EQ(last_event().holder, alice_.holder);
    EXPECT_EQ(last_event().token, token_);
    EXPECT_EQ(last_event().details.at("expired_at"), to_rfc3339(now() - 1s));
    EXPECT_THAT(verify_chain(events(), status()), Granted());
}

TEST_F(ExpireTest, OfALiveLeaseIsAConflictThatNamesTheHolderToTheLastMillisecond) {
    elapse(30s - 1ms);
    expect_untouched(expiry(alice_), Errc::lock_conflict);
    const Reply refused = apply(expiry(alice_));
    EXPECT_EQ(refused.error().holder->lease->holder, alice_.holder);
    EXPECT_EQ(refused.error().retry_after, 1ms);
    elapse(1ms);
    EXPECT_THAT(apply(expiry(alice_)), Granted());
}

TEST_F(ExpireTest, IsGrantedOnce) {
    announce();
    expect_untouched(expiry(alice_), Errc::lock_not_held);
    granted(Prune{name_, 1, "root"});
    expect_untouched(expiry(alice_), Errc::lock_not_held);
    elapse(-1ms);
    expect_untouched(expiry(alice_), Errc::lock_not_held);
}

TEST_F(ExpireTest, TouchesNoLeaseButTheOneThatWasSeen) {
    EXPECT_THAT(apply(expiry(by_alice(lock("never/used")))), RefusedWith(Errc::lock_not_held));
    elapse(31s);
    expect_untouched(expiry(bob_), Errc::lock_not_held);
    granted(bob_);
    elapse(31s);
    expect_untouched(expiry(alice_), Errc::lock_not_held);
    granted(release(bob_));
    expect_untouched(expiry(bob_), Errc::lock_not_held);
}

TEST_F(ExpireTest, EndsTheLeaseForItsHolder) {
    announce();
    expect_untouched(renewal(alice_), Errc::lock_expired);
    expect_untouched(renewal(alice_, Revive::yes), Errc::lock_expired);
    expect_untouched(release(alice_), Errc::lock_expired);
    expect_untouched(check(name_, token_), Errc::lock_expired);
    expect_untouched(alice_, Errc::lock_expired);
    expect_untouched(Transfer{name_, alice_.as, bob_.holder, bob_.as, ""}, Errc::lock_expired);
    const auto before = store_.shelf(name_);
    EXPECT_THAT(apply(cancel(alice_)), Granted()) << "a cancel is never refused";
    EXPECT_EQ(record(), before.record);
}

TEST_F(ExpireTest, EndsTheLeaseForItsHolderAlsoWhenTheClockGoesBack) {
    announce();
    elapse(-10s);
    expect_untouched(renewal(alice_, Revive::yes), Errc::lock_expired);
    expect_untouched(check(name_, token_), Errc::lock_expired);
    expect_untouched(alice_, Errc::lock_expired);
    expect_untouched(release(alice_), Errc::lock_expired);
    expect_untouched(bob_, Errc::lock_conflict);
}

TEST_F(ExpireTest, LeavesTheNextGrantAStealThatNamesTheLease) {
    announce();
    elapse(1h);
    const Outcome stolen = granted(bob_);
    ASSERT_TRUE(stolen.stolen_from);
    EXPECT_EQ(*stolen.stolen_from, (StolenFrom{alice_.as.lock_id, token_, alice_.holder, now() - 1h}));
    EXPECT_GT(stolen.lock.token, token_);
    EXPECT_EQ(last_event().kind, EventKind::stolen);
    EXPECT_EQ(last_event().details.at("from_lock_id"), alice_.as.lock_id.text());
    EXPECT_FALSE(record().is_announced());
    expect_untouched(renewal(alice_), Errc::lock_not_held);
    expect_untouched(alice_, Errc::lock_not_held);
}

TEST_F(ExpireTest, HandsTheLockOnToTheFirstWaiter) {
    const Acquire bob = queued(bob_, 1h);
    const Acquire carol = queued(by_carol(name_), 1h);
    EXPECT_FALSE(apply(bob));
    EXPECT_FALSE(apply(carol));
    elapse(31s);
    const kernel::Decision decision = store_.decide(expiry(alice_));

    ASSERT_THAT(decision.reply, Granted());
    EXPECT_EQ(decision.handed_to, bob.as.lock_id);
    EXPECT_EQ(decision.reply->lock.state, LockState::held);
    EXPECT_EQ(decision.reply->lock.lease->lock_id, bob.as.lock_id);
    EXPECT_EQ(decision.reply->lock.waiters, 1U);
    EXPECT_GT(decision.reply->lock.token, token_);
    EXPECT_EQ(kinds(), (std::vector{EventKind::acquired, EventKind::expired, EventKind::acquired}));
    EXPECT_EQ(events()[1].token, token_);
    const auto& details = last_event().details;
    EXPECT_EQ(details.at("from_holder"), alice_.holder.text);
    EXPECT_EQ(details.at("from_lock_id"), alice_.as.lock_id.text());
    EXPECT_EQ(details.at("from_token"), std::to_string(token_.value));
    EXPECT_EQ(details.at("expired_at"), to_rfc3339(now() - 1s));
    EXPECT_EQ(details.at("ttl_ms"), "30000");
    expect_untouched(release(alice_), Errc::lock_not_held);
    expect_untouched(expiry(alice_), Errc::lock_not_held);
    EXPECT_THAT(apply(renewal(bob)), Granted());
}

TEST_F(ExpireTest, DoesNotHandTheLockOnToAWaiterThatHasToLookAtOtherLocks) {
    Acquire bob = queued(bob_, 1h);
    bob.unless_held = {lock("other")};
    EXPECT_FALSE(apply(bob));
    elapse(31s);
    const kernel::Decision decision = store_.decide(expiry(alice_));
    ASSERT_THAT(decision.reply, Granted());
    EXPECT_FALSE(decision.handed_to);
    EXPECT_EQ(decision.reply->lock.state, LockState::expired);
    EXPECT_EQ(granted(bob).stolen_from->lock_id, alice_.as.lock_id);
}

TEST_F(ExpireTest, DoesNotHandTheLockOnToAWaiterThatIsGone) {
    EXPECT_FALSE(apply(queued(bob_, 10s)));
    elapse(31s);
    EXPECT_EQ(granted(expiry(alice_)).lock.state, LockState::expired);
}

TEST_F(ExpireTest, EndsTheQuestionAboutTheLease) {
    granted(Ask{name_, Credentials::random(), bob_.holder, "", lasting(10s), lasting(1h)});
    announce();
    EXPECT_FALSE(status().override_request);
    EXPECT_FALSE(record().pending);
}

TEST_F(ExpireTest, ALeaseThatWasAnnouncedCanBeBroken) {
    announce();
    EXPECT_EQ(granted(Break{name_, alice_.as.lock_id, "root", ""}).lock.state, LockState::free);
    EXPECT_FALSE(record().is_announced());
}

TEST_F(ExpireTest, IsNotForgottenByAHostThatBootsWithoutItsDate) {
    announce();
    const kernel::ClockMark then{"one boot", 0ms};
    const kernel::ClockMark after{"another", 0ms};
    const Instant long_ago = now() - 24h;
    EXPECT_EQ(kernel::rebase(record(), then, after, long_ago).held->lease.expires_at, long_ago);
}

}  // namespace
}  // namespace holdfast::tests
