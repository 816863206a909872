// Goal: what happens to a hold or to a waiter while it is busy with something else, and afterwards, is seen and told as
// it was. Method: the memory store behind a line that can be cut, with a hook at the moment that matters.

#include "client/event_log.hpp"
#include "client/faulty_store.hpp"
#include "client/waiter.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using enum HoldEventKind;

class TwoAtOnce : public testing::Test {
protected:
    Deadline soon() const { return Deadline::in(host_clock(), 10s); }
    LockStatus look(const LockName& name) { return must(inner_->inspect(name, soon())); }
    HoldOptions options(std::chrono::milliseconds ttl) {
        HoldOptions options;
        options.holder = {"alice", ""};
        options.ttl = lasting(ttl);
        options.observer = log_.observer();
        return options;
    }
    /// Renewed all the time, and with much time left.
    HoldOptions often_renewed() {
        HoldOptions often = options(60s);
        often.renew_interval = 20ms;
        return often;
    }
    /// From now on the store, and holds with these options, use `clock`.
    HoldOptions use_clock(const ManualClock& clock) {
        inner_ = must(open_store("memory:", clock));
        store_.replace_by(*inner_);
        HoldOptions own = options(900ms);
        own.clock = &clock;
        return own;
    }
    void take_away(const Hold& held) {
        must(inner_->apply_one(Break{held.name(), held.credentials().lock_id, "operator", ""}, soon()));
    }
    template <class Condition>
    static void await(Condition condition) {
        const Deadline end = Deadline::in(host_clock(), time_limit);
        while (!condition() && !end.passed(host_clock())) std::this_thread::yield();
        ASSERT_TRUE(condition());
    }

    std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    EventLog log_;
    const LockName name_ = lock("deploy/web");
};

TEST_F(TwoAtOnce, ALongLeaseThatWasHandedOnIsRenewedBeforeItsPlaceInTheQueueWouldHaveEnded) {
    auto first = must(hold(*inner_, name_, options(60s)));
    std::jthread next([&] {
        auto longer = options(1h);
        longer.wait = 60s;
        auto held = must(hold(store_, name_, longer));
        EXPECT_LT(held.lease().expires_at - held.lease().renewed_at, 1h) << "it was not handed on";
        log_.await(renewed);
        EXPECT_EQ(held.lease().expires_at - held.lease().renewed_at, 1h);
    });
    await([&] { return look(name_).waiters == 1; });
    must(first.release());
}

TEST_F(TwoAtOnce, AFailureThatWasOvercomeIsForgotten) {
    const auto held = must(hold(store_, name_, often_renewed()));
    store_.cut();
    const int before = store_.applied();
    await([&] { return store_.applied() > before + 1; });
    EXPECT_THAT(held.reason_of_expiry().message, HasSubstr("the line is cut"));
    const auto so_far = static_cast<int>(std::ranges::count(log_.kinds(), renewed));
    store_.heal();
    log_.await(renewed, so_far + 1);
    EXPECT_THAT(held.reason_of_expiry().message, Not(HasSubstr("the line is cut")));
}

TEST_F(TwoAtOnce, AStoreThatIsAwayIsNotAskedWithoutAPause) {
    ManualClock clock;
    const auto own = use_clock(clock);
    auto held = must(hold(store_, name_, own));
    store_.cut();
    const int before = store_.applied();
    clock.advance(300ms);  // A third of the ttl: time to renew.
    await([&] { return store_.applied() > before; });
    // The clock stands still, so the time for another try never comes.
    for (int look = 0; look < 10'000; ++look) std::this_thread::yield();
    EXPECT_EQ(store_.applied(), before + 1);
    held.abandon();
}

/// How a hold is lost.
enum class Way { by_time, to_others };

class LossIsTold : public TwoAtOnce, public testing::WithParamInterface<Way> {};

TEST_P(LossIsTold, AfterItWasAnnounced) {
    std::mutex mutex;
    std::stop_token token;
    bool was_announced = false;
    auto own = GetParam() == Way::by_time ? options(400ms) : often_renewed();
    own.observer = [&, tell = log_.observer()](const HoldEvent& event) {
        if (event.kind == expired || event.kind == broken) {
            const std::scoped_lock guard(mutex);
            was_announced = token.stop_requested();
        }
        tell(event);
    };
    auto held = must(hold(store_, name_, own));
    {
        const std::scoped_lock guard(mutex);
        token = held.lost();
    }
    if (GetParam() == Way::by_time)
        store_.cut();
    else
        take_away(held);
    log_.await(lost);
    const std::scoped_lock guard(mutex);
    EXPECT_TRUE(was_announced);
}

INSTANTIATE_TEST_SUITE_P(Way, LossIsTold, testing::Values(Way::by_time, Way::to_others),
                         [](const auto& test) { return test.param == Way::by_time ? "ByTime" : "ToOthers"; });

TEST_F(TwoAtOnce, TheReasonOfALossIsNotThatOfAnEarlierOne) {
    {
        auto earlier = must(hold(*inner_, name_, options(60s)));
        take_away(earlier);
        earlier.abandon();
    }
    auto held = must(hold(store_, name_, often_renewed()));
    must(inner_->apply_one(Transfer{name_, held.credentials(), {"bob", ""}, Credentials::random(), ""}, soon()));
    log_.await(lost);
    EXPECT_THAT(held.loss()->message, AllOf(HasSubstr("handed over to bob"), Not(HasSubstr("operator"))));
}

TEST_F(TwoAtOnce, NoRenewalIsSentWhileTheReleaseIsUnderWay) {
    std::atomic<bool> releasing = false;
    std::atomic<int> beside = 0;
    store_.before_calls([&] {
        if (!releasing.exchange(false)) return;
        // Several times as long as the time between two renewals.
        const int before = store_.applied();
        const Deadline end = Deadline::in(host_clock(), 150ms);
        while (!end.passed(host_clock()) && store_.applied() == before) std::this_thread::yield();
        beside = store_.applied() - before;
    });
    auto held = must(hold(store_, name_, often_renewed()));
    log_.await(renewed);
    releasing = true;
    EXPECT_THAT(held.release(), Granted());
    EXPECT_EQ(beside, 0);
    EXPECT_FALSE(held.loss());
}

TEST_F(TwoAtOnce, ACancelEndsTheTriesOfACallerWithoutAPlaceInTheQueue) {
    must(inner_->apply_one(by_bob(name_), soon()));
    std::stop_source cancel;
    auto impatient = options(60s);
    impatient.retry = {1000, 1ms, Growth::linear};
    impatient.cancel = cancel.get_token();
    impatient.observer = [&](const HoldEvent& event) {
        if (event.kind == blocked) cancel.request_stop();
    };
    EXPECT_THAT(hold(store_, name_, impatient), RefusedWith(Errc::cancelled));
    EXPECT_EQ(store_.applied(), 1);
}

TEST_F(TwoAtOnce, AGrantThatComesTooLateIsGivenBack) {
    ManualClock clock;
    const auto own = use_clock(clock);
    store_.before_answers([&, first = true]() mutable {
        if (std::exchange(first, false)) clock.advance(5s);
    });
    EXPECT_THAT(hold(store_, name_, own), RefusedWith(Errc::lock_expired));
    EXPECT_EQ(must(inner_->inspect(name_, Deadline::never())).state, LockState::free);
}

class TwoLocksAtOnce : public TwoAtOnce {
protected:
    HoldGroup hold_both(const HoldOptions& first, const HoldOptions& second) {
        return must(hold_all({{&store_, name_, first}, {&store_, other_, second}}));
    }

    const LockName other_ = lock("deploy/zone");
};

TEST_F(TwoLocksAtOnce, TheReasonOfTheirEndIsThatOfTheOneThatEndsFirst) {
    auto limited = options(60s);
    limited.max_hold = 30s;
    const auto first = hold_both(limited, options(60s));
    EXPECT_THAT(first.reason_of_expiry().message, HasSubstr("deploy/web was held as long as max_hold"));
    inner_ = must(open_store("memory:"));
    store_.replace_by(*inner_);
    const auto second = hold_both(options(60s), limited);
    EXPECT_THAT(second.reason_of_expiry().message, HasSubstr("deploy/zone was held as long as max_hold"));
}

TEST_F(TwoLocksAtOnce, AreBothLeftToRunOut) {
    {
        auto group = hold_both(options(60s), options(60s));
        group.abandon();
    }
    EXPECT_EQ(look(name_).state, LockState::held);
    EXPECT_EQ(look(other_).state, LockState::held);
}

TEST_F(TwoLocksAtOnce, ShareOneWait) {
    ManualClock clock;
    inner_ = must(open_store("memory:", clock));
    store_.replace_by(*inner_);
    const auto first = by_bob(name_, 1h);
    must(inner_->apply_one(first, Deadline::never()));
    must(inner_->apply_one(by_bob(other_, 1h), Deadline::never()));
    store_.instead_of_waits([&, is_held = true]() mutable {
        clock.advance(is_held ? 3s : 500ms);
        if (std::exchange(is_held, false)) must(inner_->apply_one(release(first), Deadline::never()));
    });
    auto waiting = options(60s);
    waiting.clock = &clock;
    waiting.wait = 5s;
    const Boottime start = clock.boottime();
    EXPECT_THAT(hold_all({{&store_, name_, waiting}, {&store_, other_, waiting}}), RefusedWith(Errc::timed_out));
    EXPECT_LT(clock.boottime(), start + 7s) << "the second wait began anew";
}

TEST_F(TwoLocksAtOnce, AreRefusedWhenTheFirstIsLostWhileTheSecondIsWaitedFor) {
    const auto in_the_way = by_bob(other_, 1h);
    must(inner_->apply_one(in_the_way, soon()));
    std::jthread meanwhile([&] {
        await([&] { return look(other_).waiters == 1; });
        must(inner_->apply_one(Break{name_, look(name_).lease->lock_id, "operator", "stuck"}, soon()));
        log_.await(lost);
        must(inner_->apply_one(release(in_the_way), soon()));
    });
    auto waiting = often_renewed();
    waiting.wait = 60s;
    EXPECT_THAT(hold_all({{&store_, name_, waiting}, {&store_, other_, waiting}}), RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(look(other_).state, LockState::free);
}

class WaitAtOnce : public TwoAtOnce {
protected:
    /// Waits for `wanted` in turn, and calls `at_the_end` between the last question and the leaving.
    Result<client::Granted> wait_until(const Acquire& wanted, Deadline end, const std::function<void()>& at_the_end) {
        const auto blocked = [&](const Error&) {
            // So near to its end that nothing is asked any more.
            if (end.at - host_clock().boottime() > 20ms) return;
            await([&] { return end.passed(host_clock()); });
            at_the_end();
        };
        return client::acquire_in_turn(store_, wanted, host_clock(), {.deadline = end, .blocked = blocked});
    }
};

TEST_F(WaitAtOnce, AStoreThatIsAwayForAMomentDoesNotEndIt) {
    store_.cut();
    auto patient = options(60s);
    patient.wait = 60s;
    patient.observer = [&](const HoldEvent& event) {
        if (event.kind == blocked) store_.heal();
    };
    EXPECT_THAT(hold(store_, name_, patient), Granted());
}

// An observer that is told can listen for a signal that ends the wait.
TEST_F(WaitAtOnce, TheCallerIsToldThatTheStoreIsAwayAndCanEndIt) {
    store_.cut();
    std::stop_source cancel;
    auto impatient = options(60s);
    impatient.wait = HoldOptions::forever;
    impatient.cancel = cancel.get_token();
    impatient.observer = [&](const HoldEvent& event) {
        if (event.kind == blocked) cancel.request_stop();
    };
    EXPECT_THAT(hold(store_, name_, impatient), RefusedWith(Errc::cancelled));
}

TEST_F(WaitAtOnce, NobodySleepsBeyondItsEnd) {
    must(inner_->apply_one(by_bob(name_, 1h), soon()));
    store_.instead_of_waits([] {});
    const Deadline end = Deadline::in(host_clock(), 50ms);
    EXPECT_THAT(wait_until(by_alice(name_, 1h), end, [] {}), RefusedWith(Errc::lock_conflict));
    EXPECT_LE(store_.longest_wait(), end.at);
}

TEST_F(WaitAtOnce, GivingUpRemovesTheTicketOfFormerCredentialsToo) {
    must(inner_->apply_one(by_bob(name_, 1h), soon()));
    // The answer that is lost was a place in the queue, and what follows is asked by somebody else.
    store_.lose_answers(1);
    store_.before_answers([&] {
        const Deadline stale = Deadline::in(host_clock(), 100ms);
        await([&] { return stale.passed(host_clock()); });
        store_.cut();
    });
    const auto refused = wait_until(queued(by_alice(name_, 100ms), 1h), Deadline::in(host_clock(), 250ms), [&] {
        store_.before_answers(nullptr);
        store_.heal();
    });
    EXPECT_THAT(refused, RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(look(name_).waiters, 0U);
}

TEST_F(WaitAtOnce, ARefusedCancelIsOutcomeUnknown) {
    store_.lose_answers(1);
    store_.before_answers([&] { store_.cut(); });
    const auto refused = wait_until(by_alice(name_, 1h), Deadline::in(host_clock(), 50ms), [&] {
        store_.before_answers(nullptr);
        store_.refuse_last(Errc::denied);
        store_.heal();
    });
    EXPECT_THAT(refused, RefusedWith(Errc::outcome_unknown));
}

}  // namespace
}  // namespace holdfast::tests
