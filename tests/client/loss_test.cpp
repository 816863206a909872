// Goal: a hold is called lost in time although a call to the store never returns, survives one such call, and tells the
// true reason when it is lost. Method: the memory store with short leases, behind a line that hangs or refuses.

#include "client/loss.hpp"

#include "client/event_log.hpp"
#include "client/faulty_store.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

#include <future>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using enum HoldEventKind;

class LossTest : public testing::Test {
protected:
    ~LossTest() override { store_.let_go(); }

    Deadline soon() const { return Deadline::in(host_clock(), 5s); }
    LockStatus look() { return must(inner_->inspect(name_, soon())); }
    HoldOptions short_lease(std::chrono::milliseconds ttl) {
        HoldOptions options;
        options.holder = {"alice", ""};
        options.ttl = lasting(ttl);
        options.observer = log_.observer();
        return options;
    }
    void await_call_after(int before) const {
        const Deadline end = Deadline::in(host_clock(), time_limit);
        while (store_.applied() == before && !end.passed(host_clock())) std::this_thread::yield();
    }
    /// Waits for the answer to a release, which must come although calls hang.
    Result<void> release_in_time(Hold& held) {
        auto released = std::async(std::launch::async, [&] { return held.release(); });
        if (released.wait_for(time_limit) != std::future_status::ready) {
            ADD_FAILURE() << "the release waits for a call that hangs";
            store_.let_go();
        }
        return released.get();
    }
    /// Why `held` is lost, when it is.
    std::string reason(const Hold& held) {
        log_.await(lost);
        return held.loss()->message;
    }

    std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    EventLog log_;
    const LockName name_ = lock("deploy/web");
};

/// Lets the calls that hang come back before the hold is destroyed, which waits for them.
class HangingTest : public LossTest {
protected:
    Hold& hold_it(const HoldOptions& options) { return held_.emplace(must(hold(store_, name_, options))); }
    ~HangingTest() override { store_.let_go(); }

    std::optional<Hold> held_;
};

TEST_F(HangingTest, AHoldSurvivesARenewalThatNeverReturns) {
    Hold& held = hold_it(short_lease(3s));
    store_.hang(1);
    log_.await(renewed);
    EXPECT_FALSE(held.loss());
    EXPECT_EQ(look().lease->lock_id, held.credentials().lock_id);
}

TEST_F(HangingTest, TheLossIsAnnouncedInTimeWhileEveryRenewalHangs) {
    Hold& held = hold_it(short_lease(600ms));
    LockState at_loss = LockState::free;
    const std::stop_callback seen(held.lost(), [&] { at_loss = look().state; });
    store_.hang(1000);
    EXPECT_THAT(reason(held), AllOf(HasSubstr("could not be renewed"), HasSubstr("has not returned")));
    EXPECT_EQ(at_loss, LockState::held);
}

TEST_F(HangingTest, AReleaseIsNotKeptForEverByARenewalThatHangs) {
    Hold& held = hold_it(short_lease(600ms));
    const int before = store_.applied();
    store_.hang(1);
    await_call_after(before);
    EXPECT_THAT(release_in_time(held), Granted());
    EXPECT_EQ(look().state, LockState::free);
    EXPECT_TRUE(held.is_stuck());
}

TEST_F(HangingTest, AReleaseThatHangsAfterARenewalThatDidIsNotWaitedForEither) {
    Hold& held = hold_it(short_lease(600ms));
    const int before = store_.applied();
    store_.hang(1000);
    await_call_after(before);
    EXPECT_THAT(release_in_time(held), RefusedWith(Errc::outcome_unknown));
}

TEST_F(LossTest, SaysThatTheLongestHoldIsReached) {
    auto options = short_lease(300ms);
    options.max_hold = 500ms;
    auto held = must(hold(store_, name_, options));
    EXPECT_THAT(reason(held), AllOf(HasSubstr("deploy/web"), HasSubstr("max_hold"), HasSubstr("500 ms")));
}

TEST_F(LossTest, SaysThatRenewalIsOff) {
    auto options = short_lease(300ms);
    options.renew = false;
    auto held = must(hold(store_, name_, options));
    EXPECT_THAT(reason(held), AllOf(HasSubstr("deploy/web"), HasSubstr("renew = false"), HasSubstr("300 ms")));
}

TEST_F(LossTest, SaysWhatTheStoreRefusedWith) {
    auto held = must(hold(store_, name_, short_lease(300ms)));
    const Instant granted_at = look().lease->acquired_at;
    store_.refuse_with({Errc::denied, "the disk is full"});
    EXPECT_THAT(reason(held), AllOf(HasSubstr("E_DENIED"), HasSubstr("the disk is full"),
                                    HasSubstr("last renewed " + to_rfc3339(granted_at).substr(11, 8))));
    EXPECT_EQ(held.loss()->code, Errc::lock_expired);
}

TEST_F(LossTest, AFailureThatWasOvercomeIsNotTheReason) {
    auto options = short_lease(600ms);
    options.max_hold = 1500ms;
    auto held = must(hold(store_, name_, options));
    store_.cut();
    const int before = store_.applied();
    await_call_after(before);
    store_.heal();
    EXPECT_THAT(reason(held), AllOf(HasSubstr("max_hold"), testing::Not(HasSubstr("the line is cut"))));
}

TEST_F(LossTest, WhatTheStoreCallsExpiredIsLostAlthoughItsTimeIsNotOver) {
    auto options = short_lease(20s);
    options.renew_interval = 20ms;
    auto held = must(hold(store_, name_, options));
    store_.refuse_with({Errc::lock_expired, "the lease on deploy/web ran out"});
    // Word for word: when its time is over, the last refusal is a part of the reason.
    EXPECT_EQ(reason(held), "the lease on deploy/web ran out");
    EXPECT_TRUE(held.lost().stop_requested());
}

TEST_F(LossTest, SaysWhoBrokeItAndWhy) {
    auto held = must(hold(store_, name_, short_lease(600ms)));
    must(inner_->apply_one(Break{name_, held.credentials().lock_id, "operator", "runner is gone"}, soon()));
    EXPECT_THAT(reason(held), AllOf(HasSubstr("operator"), HasSubstr("runner is gone")));
}

TEST_F(LossTest, SaysToWhomItWasHandedOver) {
    auto held = must(hold(store_, name_, short_lease(600ms)));
    must(inner_->apply_one(Transfer{name_, held.credentials(), {"bob", ""}, Credentials::random(), ""}, soon()));
    EXPECT_THAT(reason(held), HasSubstr("bob"));
}

TEST_F(LossTest, SaysThatItWasReleasedBySomebodyElse) {
    auto held = must(hold(store_, name_, short_lease(600ms)));
    must(inner_->apply_one(Release{name_, held.credentials()}, soon()));
    EXPECT_THAT(reason(held), HasSubstr("released"));
}

TEST_F(LossTest, SaysThatTheStoreNoLongerKnowsTheLease) {
    auto held = must(hold(store_, name_, short_lease(600ms)));
    const std::unique_ptr<Store> emptied = must(open_store("memory:"));
    store_.replace_by(*emptied);
    EXPECT_THAT(reason(held), AllOf(HasSubstr("deploy/web"), HasSubstr("emptied")));
}

TEST_F(LossTest, IsAnnouncedBeforeTheHistoryIsAskedWhy) {
    auto held = must(hold(store_, name_, short_lease(600ms)));
    std::atomic<bool> was_announced = false;
    store_.before_history([&] { was_announced = held.lost().stop_requested(); });
    must(inner_->apply_one(Break{name_, held.credentials().lock_id, "operator", ""}, soon()));
    log_.await(lost);
    EXPECT_TRUE(was_announced);
}

TEST_F(LossTest, ToWhomALeaseThatRanOutWentIsTold) {
    const auto alice = by_alice(name_, 60ms);
    must(inner_->apply_one(alice, soon()));
    const auto seen = look().seq;
    while (look().state == LockState::held) std::this_thread::yield();
    const auto bob = by_bob(name_);
    must(inner_->apply_one(bob, soon()));
    const auto events = must(inner_->history(HistoryQuery{name_, {}, seen, {}}, soon()));
    const auto told = client::explain_loss(name_, alice.as.lock_id, events, host_clock().wall());
    ASSERT_TRUE(told);
    EXPECT_EQ(told->kind, stolen);
    EXPECT_THAT(told->message, AllOf(HasSubstr("had run out"), HasSubstr("bob")));

    must(inner_->apply_one(release(bob), soon()));
    const auto later = must(inner_->history(HistoryQuery{name_, {}, look().seq - 1, {}}, soon()));
    EXPECT_FALSE(client::explain_loss(name_, alice.as.lock_id, later, host_clock().wall()))
        << "what somebody else gave back is no reason";
}

TEST_F(LossTest, ToWhomAStaleLeaseWentIsTold) {
    const auto alice = by_alice(name_, 60s);
    must(inner_->apply_one(alice, soon()));
    const auto seen = look();
    Acquire bob = by_bob(name_);
    bob.takes_over = StaleLease{seen.lease->lock_id, seen.lease->renew_seq, 60ms};
    while (!inner_->apply_one(bob, soon())) std::this_thread::yield();
    const auto events = must(inner_->history(HistoryQuery{name_, {}, seen.seq, {}}, soon()));
    const auto told = client::explain_loss(name_, alice.as.lock_id, events, host_clock().wall());
    ASSERT_TRUE(told);
    EXPECT_EQ(told->kind, stolen);
    EXPECT_THAT(told->message, AllOf(HasSubstr("last renewed"), HasSubstr("bob")));
}

}  // namespace
}  // namespace holdfast::tests
