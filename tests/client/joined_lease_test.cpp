// Goal: a joiner of another command's lease trusts it no longer than the store does, revives nothing, and leaves it as
// it is at the end. Method: the memory store on a clock that stands still, behind a line that loses and delays answers.

#include "client/event_log.hpp"
#include "client/faulty_store.hpp"
#include "client/join.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using client::JoinedLease;
using client::JoinTerms;

class JoinedLeaseTest : public testing::Test {
protected:
    JoinedLeaseTest() { must(inner_->apply_one(outer_, Deadline::never())); }

    Result<JoinedLease> prove(const JoinTerms& terms = {}) {
        return JoinedLease::prove(store_, outer_.name, outer_.as, terms, clock_, 60s);
    }
    LockStatus look() { return must(inner_->inspect(outer_.name, Deadline::never())); }
    HoldOptions options() {
        HoldOptions options;
        options.clock = &clock_;
        options.observer = log_.observer();
        return options;
    }

    ManualClock clock_;
    std::unique_ptr<Store> inner_ = must(open_store("memory:", clock_));
    FaultyStore store_{*inner_};
    EventLog log_;
    const Acquire outer_ = by_alice(lock("deploy/web"), 10s);
};

TEST_F(JoinedLeaseTest, IsTrustedFromBeforeTheProofWasSent) {
    const Boottime sent_at = clock_.boottime();
    store_.before_answers([&] { clock_.advance(2s); });
    auto held = must(must(prove()).keep(options()));
    EXPECT_LT(held.deadline(), sent_at + 10s);
    held.abandon();
}

TEST_F(JoinedLeaseTest, ALeaseThatIsOverWhenTheProofArrivesIsNotKept) {
    store_.before_answers([&] { clock_.advance(9900ms); });
    auto joined = must(prove());
    EXPECT_THAT(std::move(joined).keep(options()), RefusedWith(Errc::lock_expired));
    EXPECT_EQ(look().state, LockState::held) << "it was not ours to give back";
}

TEST_F(JoinedLeaseTest, IsNotRevivedWhenItRunsOutBetweenTheLookAndTheProof) {
    store_.before_calls([&] { clock_.advance(11s); });
    EXPECT_THAT(prove(), RefusedWith(Errc::lock_expired));
    EXPECT_EQ(look().state, LockState::expired);
}

TEST_F(JoinedLeaseTest, IsFoundWhenTheAnswerToTheProofWasLost) {
    store_.lose_answers(1);
    EXPECT_THAT(prove(), Granted());
    EXPECT_EQ(store_.applied(), 2);
}

TEST_F(JoinedLeaseTest, CannotBeProvedWithoutTheStore) {
    store_.cut();
    EXPECT_THAT(prove(), RefusedWith(Errc::store_unavailable));
    store_.heal();
    store_.before_looks([&] { store_.cut(); });
    const auto refused = prove();
    ASSERT_THAT(refused, RefusedWith(Errc::store_unavailable));
    EXPECT_FALSE(client::is_not_current(refused.error().code)) << "nobody knows whether it is current";
}

TEST_F(JoinedLeaseTest, IsRefusedWhileALockThatExcludesItIsHeld) {
    const JoinTerms terms{.unless_held = {lock("other"), lock("freeze")}};
    EXPECT_THAT(prove(terms), Granted());
    must(inner_->apply_one(by_bob(lock("freeze"), 5s), Deadline::never()));
    const auto refused = prove(terms);
    ASSERT_THAT(refused, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(refused.error().holder->name, lock("freeze"));
    clock_.advance(6s);
    EXPECT_THAT(prove(terms), Granted()) << "what has run out excludes nobody";
}

TEST_F(JoinedLeaseTest, ThatIsTakenAwayDuringTheProofIsNotCurrent) {
    // After the renewal and before the look at the locks that exclude it.
    store_.before_answers([&] {
        if (store_.applied() == 1)
            must(inner_->apply_one(Break{outer_.name, outer_.as.lock_id, "operator", "stuck"}, Deadline::never()));
    });
    EXPECT_THAT(prove({.unless_held = {lock("freeze")}}), RefusedWith(Errc::lock_not_held));
}

TEST_F(JoinedLeaseTest, IsRenewedForItsOwnTtlWhateverTheOptionsSay) {
    auto options = this->options();
    options.ttl = lasting(1h);
    options.renew_interval = 1s;
    auto held = must(must(prove()).keep(options));
    clock_.advance(1s);
    log_.await(HoldEventKind::renewed);
    EXPECT_EQ(look().lease->ttl, 10s);
    EXPECT_EQ(look().lease->expires_at, clock_.wall() + 10s);
    must(held.release());
    EXPECT_EQ(look().state, LockState::held);
    EXPECT_THAT(log_.kinds(), testing::Not(testing::Contains(HoldEventKind::released)));
}

TEST_F(JoinedLeaseTest, ThatMayNotBeRenewedIsProvedForWhatIsLeftOfIt) {
    clock_.advance(4s);
    const auto end = look().lease->expires_at;
    const auto joined = must(prove({.renew = false}));
    EXPECT_EQ(joined.ttl().time(), 6s);
    EXPECT_EQ(look().lease->expires_at, end);
    clock_.advance(5960ms);
    EXPECT_THAT(prove({.renew = false}), RefusedWith(Errc::lock_expired)) << "less is left than a lease may last";
    EXPECT_EQ(look().lease->expires_at, end);
}

TEST_F(JoinedLeaseTest, IsGivenUpLikeAnyOtherWhenItEnds) {
    auto held = must(must(prove()).keep(options()));
    must(inner_->apply_one(release(outer_), Deadline::never()));
    clock_.advance(4s);
    log_.await(HoldEventKind::lost);
    EXPECT_THAT(held.release(), RefusedWith(Errc::lock_not_held));
}

}  // namespace
}  // namespace holdfast::tests
