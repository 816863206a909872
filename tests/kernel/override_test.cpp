// Ask and Answer: a lock changes hands because somebody asked and somebody entitled agreed.

#include "kernel/little_store.hpp"

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class OverrideTest : public KernelTest {
protected:
    void SetUp() override { token_ = token_of(alice_); }

    [[nodiscard]] Ask asking(std::string_view who = "bob") const {
        return {name_, Credentials::random(), Holder{std::string(who), ""}, "hotfix", lasting(20s), lasting(60s)};
    }
    [[nodiscard]] Answer answer(const Ask& ask, Verdict verdict) const {
        return {name_, ask.as.lock_id, verdict, "root@ops", "as agreed", std::nullopt};
    }
    [[nodiscard]] Answer answer_by(const Credentials& who, const Ask& ask, Verdict verdict) const {
        Answer request = answer(ask, verdict);
        request.by = who;
        return request;
    }
    /// The lease of an asker that was approved within limits.
    Lease approved(const Ask& ask, std::chrono::milliseconds longest_ttl, std::chrono::milliseconds max_hold) {
        granted(ask);
        Answer yes = answer(ask, Verdict::approve);
        yes.longest_ttl = longest_ttl;
        yes.max_hold = max_hold;
        return *granted(yes).lock.lease;
    }

    const Acquire alice_ = by_alice(name_, 5min);
    FencingToken token_{};
};

TEST_F(OverrideTest, AskingIsRecordedAndMovesNothing) {
    const Ask ask = asking();
    const Outcome outcome = granted(ask);
    EXPECT_EQ(outcome.lock.override_request, (Override{ask.as.lock_id, ask.holder, "hotfix", 20s, now(), now() + 60s}));
    EXPECT_EQ(outcome.lock.lease->lock_id, alice_.as.lock_id);
    EXPECT_EQ(outcome.lock.token, token_);
    EXPECT_EQ(last_event().kind, EventKind::override_requested);
    EXPECT_EQ(last_event().holder.text, "bob");
    EXPECT_EQ(last_event().lock_id, ask.as.lock_id);
    EXPECT_EQ(last_event().reason, "hotfix");
    EXPECT_EQ(last_event().details.at("from_holder"), "alice");
}

TEST_F(OverrideTest, ApprovalMovesTheLockToTheAskerWithANewToken) {
    const Ask ask = asking();
    granted(ask);
    elapse(1s);
    const Outcome outcome = granted(answer(ask, Verdict::approve));
    const Lease& lease = *outcome.lock.lease;
    EXPECT_EQ(lease.lock_id, ask.as.lock_id);
    EXPECT_EQ(lease.holder, ask.holder);
    EXPECT_EQ(lease.reason, "hotfix");
    EXPECT_EQ(lease.expires_at, now() + 20s);
    EXPECT_GT(lease.token, token_);
    EXPECT_FALSE(outcome.lock.override_request);
    EXPECT_EQ(outcome.lock, status());

    EXPECT_EQ(last_event().kind, EventKind::override_approved);
    EXPECT_EQ(last_event().actor, "root@ops");
    EXPECT_EQ(last_event().reason, "as agreed");
    EXPECT_EQ(last_event().lock_id, ask.as.lock_id);
    EXPECT_EQ(last_event().details.at("from_lock_id"), alice_.as.lock_id.text());
    EXPECT_EQ(last_event().details.at("from_token"), std::to_string(token_.value));
}

TEST_F(OverrideTest, AnApprovalThatBreaksGlassIsMarked) {
    const Ask ask = asking();
    granted(ask);
    Answer own = answer(ask, Verdict::approve);
    own.breaks_glass = true;
    granted(own);
    EXPECT_EQ(last_event().details.at("break_glass"), "yes");
    EXPECT_EQ(last_event().details.at("from_lock_id"), alice_.as.lock_id.text());

    const Ask next = asking();
    granted(next);
    granted(answer(next, Verdict::approve));
    EXPECT_FALSE(last_event().details.contains("break_glass"));
}

TEST_F(OverrideTest, ApprovalGivesNoMoreThanTheAnswerAllows) {
    const Ask ask = asking();
    const Lease lease = approved(ask, 5s, 8s);
    EXPECT_EQ(lease.ttl, 5s);
    EXPECT_EQ(lease.expires_at, now() + 5s);
    EXPECT_EQ(lease.max_until, now() + 8s);
    elapse(4s);
    EXPECT_EQ(granted(Renew{name_, ask.as, lasting(1min)}).lock.lease->expires_at, now() + 4s);
}

TEST_F(OverrideTest, ApprovalDoesNotLengthenWhatWasAskedFor) {
    const Lease lease = approved(asking(), 1h, 10s);
    EXPECT_EQ(lease.ttl, 20s);
    EXPECT_EQ(lease.expires_at, now() + 10s) << "never beyond max_until";
}

TEST_F(OverrideTest, TheCredentialsOfTheAskWorkAfterApprovalAndTheOldOnesDoNot) {
    const Ask ask = asking();
    granted(ask);
    expect_untouched(Renew{name_, ask.as, lasting(1s)}, Errc::lock_not_held);
    granted(answer(ask, Verdict::approve));
    expect_untouched(renewal(alice_), Errc::lock_not_held);
    expect_untouched(release(alice_), Errc::lock_not_held);
    expect_untouched(alice_, Errc::lock_not_held);
    expect_untouched(check(name_, token_), Errc::fencing_mismatch);
    EXPECT_THAT(apply(Renew{name_, ask.as, lasting(30s)}), Granted());
    EXPECT_THAT(apply(Release{name_, ask.as}), Granted());
}

TEST_F(OverrideTest, DenialRemovesTheAskAndMovesNothing) {
    const Ask ask = asking();
    granted(ask);
    const Outcome outcome = granted(answer(ask, Verdict::deny));
    EXPECT_FALSE(outcome.lock.override_request);
    EXPECT_EQ(outcome.lock.lease->lock_id, alice_.as.lock_id);
    EXPECT_EQ(outcome.lock.token, token_);
    EXPECT_EQ(last_event().kind, EventKind::override_denied);
    EXPECT_EQ(last_event().holder.text, "bob");
    EXPECT_EQ(last_event().actor, "root@ops");
    expect_untouched(answer(ask, Verdict::approve), Errc::lock_not_held);
    EXPECT_THAT(apply(asking("carol")), Granted());
}

TEST_F(OverrideTest, TheHolderMayAnswerWithItsCredentials) {
    const Ask ask = asking();
    granted(ask);
    EXPECT_EQ(granted(answer_by(alice_.as, ask, Verdict::approve)).lock.lease->lock_id, ask.as.lock_id);
}

TEST_F(OverrideTest, NobodyElseMayAnswerNotEvenTheAsker) {
    const Ask ask = asking();
    granted(ask);
    for (const Verdict verdict : {Verdict::approve, Verdict::deny}) {
        expect_untouched(answer_by(ask.as, ask, verdict), Errc::denied);
        expect_untouched(answer_by(Credentials::random(), ask, verdict), Errc::denied);
        expect_untouched(answer_by({alice_.as.lock_id, LeaseKey::random()}, ask, verdict), Errc::denied);
    }
}

TEST_F(OverrideTest, ASecondAskerIsDeniedWhileTheFirstWaits) {
    granted(asking("bob"));
    expect_untouched(asking("carol"), Errc::denied);
    elapse(60s);
    EXPECT_THAT(apply(asking("carol")), Granted());
    EXPECT_EQ(status().override_request->asker.text, "carol");
}

TEST_F(OverrideTest, SomebodyElsesAskCannotBeTakenOverByItsPublicLockId) {
    const Ask ask = asking("bob");
    granted(ask);
    Ask forged = asking("mallory");
    forged.as.lock_id = ask.as.lock_id;
    expect_untouched(forged, Errc::denied);
}

TEST_F(OverrideTest, AskingMayBeRepeatedAndChangesNothing) {
    const Ask ask = asking();
    granted(ask);
    const auto before = store_.shelf(name_);
    elapse(1s);
    EXPECT_THAT(apply(ask), Granted());
    EXPECT_EQ(record(), before.record);
    EXPECT_EQ(store_.shelf(name_).events, before.events);
}

TEST_F(OverrideTest, AnAnswerThatComesTooLateIsRefused) {
    const Ask ask = asking();
    granted(ask);
    elapse(60s);
    EXPECT_FALSE(status().override_request);
    expect_untouched(answer(ask, Verdict::approve), Errc::lock_not_held);
    expect_untouched(answer(ask, Verdict::deny), Errc::lock_not_held);
}

TEST_F(OverrideTest, AnAnswerToAnotherQuestionIsRefused) {
    granted(asking("bob"));
    expect_untouched(answer(asking("carol"), Verdict::approve), Errc::lock_not_held);
}

TEST_F(OverrideTest, AFreeOrExpiredLockCannotBeAskedFor) {
    elapse(5min);
    expect_untouched(asking(), Errc::lock_not_held);
    granted(release(alice_));
    expect_untouched(asking(), Errc::lock_not_held);
    EXPECT_THAT(apply(Ask{lock("never/used"), Credentials::random(), Holder{"bob", ""}, "", lasting(1s), lasting(1s)}),
                RefusedWith(Errc::lock_not_held));
}

TEST_F(OverrideTest, NothingIsHandedOverOnceTheLeaseRanOut) {
    granted(Renew{name_, alice_.as, lasting(10s)});
    const Ask ask = asking();
    granted(ask);
    elapse(10s);
    expect_untouched(answer(ask, Verdict::approve), Errc::lock_not_held);
}

TEST_F(OverrideTest, AQuestionEndsWithTheLeaseThatItWasAbout) {
    const Ask ask = asking();
    granted(ask);
    granted(release(alice_));
    EXPECT_FALSE(status().override_request);
    granted(by_carol(name_));
    expect_untouched(answer(ask, Verdict::approve), Errc::lock_not_held);
}

TEST_F(OverrideTest, TheHolderCannotAskItself) {
    Ask ask = asking("alice");
    ask.as = alice_.as;
    expect_untouched(ask, Errc::usage);
}

TEST_F(OverrideTest, ALockIdThatWasUsedCannotBeAskedWith) {
    granted(release(alice_));
    granted(by_carol(name_));
    Ask ask = asking("alice");
    ask.as = alice_.as;
    expect_untouched(ask, Errc::usage);
    ask.as.lock_id = status().lease->lock_id;
    expect_untouched(ask, Errc::usage);
}

TEST_F(OverrideTest, ApprovalTakesTheAskerOutOfTheQueue) {
    Acquire bob = queued(by_bob(name_));
    apply(bob);
    Ask ask = asking("bob");
    ask.as = bob.as;
    granted(ask);
    EXPECT_EQ(granted(answer(ask, Verdict::approve)).lock.waiters, 0U);
    EXPECT_TRUE(store_.shelf(name_).tickets.empty());
    EXPECT_THAT(apply(bob), Granted()) << "the waiter's next look finds its own lease";

    granted(Release{name_, bob.as});
    EXPECT_THAT(apply(by_carol(name_)), Granted()) << "nobody is left in line";
}

TEST_F(OverrideTest, DenialLeavesTheAskerInTheQueue) {
    const Acquire bob = queued(by_bob(name_));
    apply(bob);
    Ask ask = asking("bob");
    ask.as = bob.as;
    granted(ask);
    EXPECT_EQ(granted(answer(ask, Verdict::deny)).lock.waiters, 1U);
    EXPECT_EQ(store_.shelf(name_).tickets.size(), 1U);
}

}  // namespace
}  // namespace holdfast::tests
