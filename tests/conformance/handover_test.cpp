// How a lock changes hands without being released: transfer, break, ask and answer.
#include "conformance/store_conformance.hpp"

namespace holdfast::tests {

using namespace std::chrono_literals;

namespace {

Transfer to_bob(const Acquire& from) {
    return {
        .name = from.name, .as = from.as, .to = {"bob", ""}, .to_as = Credentials::random(), .reason = "shift ends"};
}

Break by_operator(const Acquire& victim) {
    return {.name = victim.name, .expected = victim.as.lock_id, .actor = "root", .reason = "stuck"};
}

Ask ask_by_bob(const LockName& name) {
    return {.name = name,
            .as = Credentials::random(),
            .holder = {"bob", ""},
            .reason = "hotfix",
            .ttl = lasting(20s),
            .valid_for = lasting(5s)};
}

Answer answer(const Ask& ask, Verdict verdict) {
    return {.name = ask.name, .ask_id = ask.as.lock_id, .verdict = verdict, .actor = "root", .reason = "ok"};
}

}  // namespace

TEST_P(StoreConformance, ATransferGivesANewTokenAndLeavesNoGap) {
    const Acquire alice = by_alice(lock("x"));
    const Outcome before = granted(alice);
    const Transfer transfer = to_bob(alice);

    const Outcome after = granted(transfer);

    EXPECT_GT(after.lock.token, before.lock.token);
    EXPECT_EQ(after.lock.lease->lock_id, transfer.to_as.lock_id);
    EXPECT_EQ(after.lock.lease->holder.text, "bob");
    EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(check(lock("x"), before.lock.token)), RefusedWith(Errc::fencing_mismatch));
    EXPECT_THAT(apply(transfer), Granted()) << "a repeat finds what the lost answer said";
    EXPECT_EQ(inspect(lock("x")).token, after.lock.token);
    EXPECT_THAT(apply(Renew{lock("x"), transfer.to_as, lasting(1s)}), Granted());
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, AnExpiredLeaseCannotBeTransferred) {
    const Acquire alice = by_alice(lock("x"), 1s);
    granted(alice);
    elapse(1s);
    EXPECT_THAT(apply(to_bob(alice)), RefusedWith(Errc::lock_expired));
    EXPECT_THAT(apply(to_bob(by_carol(lock("x")))), RefusedWith(Errc::lock_not_held));
}

TEST_P(StoreConformance, ABreakFreesTheLockSpendsATokenAndNamesWhoDidIt) {
    const Acquire alice = by_alice(lock("x"));
    const Outcome before = granted(alice);

    const Outcome broken = granted(by_operator(alice));

    EXPECT_EQ(broken.lock.state, LockState::free);
    EXPECT_GT(broken.lock.token, before.lock.token);
    const AuditEvent event = history(lock("x")).back();
    EXPECT_EQ(event.kind, EventKind::broken);
    EXPECT_EQ(event.actor, "root");
    EXPECT_EQ(event.reason, "stuck");
    EXPECT_EQ(event.holder.text, "alice");
    EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(alice), RefusedWith(Errc::lock_not_held)) << "a late duplicate must not undo the break";
    EXPECT_GT(granted(by_bob(lock("x"))).lock.token, broken.lock.token);
}

TEST_P(StoreConformance, ABreakNeverTouchesALeaseThatTheOperatorDidNotSee) {
    const Acquire alice = by_alice(lock("x"));
    EXPECT_THAT(apply(by_operator(alice)), RefusedWith(Errc::lock_not_held));
    granted(alice);
    granted(release(alice));
    const Outcome taken = granted(by_bob(lock("x")));
    EXPECT_THAT(apply(by_operator(alice)), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(inspect(lock("x")), taken.lock);
}

TEST_P(StoreConformance, AnApprovedAskMovesTheLockToTheAsker) {
    const Acquire alice = by_alice(lock("x"));
    const Outcome before = granted(alice);
    const Ask ask = ask_by_bob(lock("x"));
    granted(ask);
    ASSERT_TRUE(inspect(lock("x")).override_request);
    EXPECT_EQ(inspect(lock("x")).override_request->asker.text, "bob");
    EXPECT_EQ(inspect(lock("x")).override_request->reason, "hotfix");
    EXPECT_THAT(apply(renewal(alice)), Granted()) << "a question takes nothing away";

    const Outcome after = granted(answer(ask, Verdict::approve));

    EXPECT_GT(after.lock.token, before.lock.token);
    EXPECT_EQ(after.lock.lease->lock_id, ask.as.lock_id);
    EXPECT_EQ(after.lock.lease->expires_at, now() + 20s);
    EXPECT_FALSE(after.lock.override_request);
    EXPECT_THAT(apply(renewal(alice)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(Renew{lock("x"), ask.as, lasting(1s)}), Granted());
    expect_whole_chain(lock("x"));
}

TEST_P(StoreConformance, ADeniedAskChangesNothingElse) {
    const Acquire alice = by_alice(lock("x"));
    const Outcome before = granted(alice);
    const Ask ask = ask_by_bob(lock("x"));
    granted(ask);
    Answer no = answer(ask, Verdict::deny);
    no.by = alice.as;
    granted(no);
    EXPECT_FALSE(inspect(lock("x")).override_request);
    EXPECT_EQ(inspect(lock("x")).lease, before.lock.lease);
    EXPECT_THAT(apply(answer(ask, Verdict::approve)), RefusedWith(Errc::lock_not_held));
}

TEST_P(StoreConformance, OnlyTheHolderOrAnOperatorCanAnswer) {
    granted(by_alice(lock("x")));
    const Ask ask = ask_by_bob(lock("x"));
    granted(ask);
    Answer by_asker = answer(ask, Verdict::approve);
    by_asker.by = ask.as;
    EXPECT_THAT(apply(by_asker), RefusedWith(Errc::denied));
    EXPECT_EQ(inspect(lock("x")).lease->holder.text, "alice");
}

TEST_P(StoreConformance, AQuestionStandsOnlyAsLongAsItIsValid) {
    granted(by_alice(lock("x"), 1h));
    const Ask ask = ask_by_bob(lock("x"));
    granted(ask);
    EXPECT_THAT(apply(ask), Granted()) << "a repeat is the same question";
    EXPECT_THAT(apply(ask_by_bob(lock("x"))), RefusedWith(Errc::denied));
    elapse(5s);
    EXPECT_FALSE(inspect(lock("x")).override_request);
    EXPECT_THAT(apply(answer(ask, Verdict::approve)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(ask_by_bob(lock("x"))), Granted());
}

TEST_P(StoreConformance, AFreeLockCannotBeAskedFor) {
    EXPECT_THAT(apply(ask_by_bob(lock("x"))), RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(inspect(lock("x")).seq, 0U);
}

TEST_P(StoreConformance, AQuestionEndsWithTheLeaseItIsAbout) {
    const Acquire alice = by_alice(lock("x"));
    granted(alice);
    const Ask ask = ask_by_bob(lock("x"));
    granted(ask);
    granted(release(alice));
    EXPECT_FALSE(inspect(lock("x")).override_request);
    granted(by_carol(lock("x")));
    EXPECT_THAT(apply(answer(ask, Verdict::approve)), RefusedWith(Errc::lock_not_held));
}

}  // namespace holdfast::tests
