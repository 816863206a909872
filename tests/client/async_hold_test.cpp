// Goal: a hold that was taken without a thread is renewed, loses loudly, and is given back, as every hold is; and a
// thousand of them with a thousand waiters cost a few threads. Method: the memory store behind a line that fails.
#include "client/answer.hpp"
#include "client/event_log.hpp"
#include "client/faulty_store.hpp"
#include "client/watching.hpp"
#include "holdfast/async.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

#include <optional>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using enum HoldEventKind;

class AsyncHoldTest : public testing::Test {
protected:
    [[nodiscard]] HoldOptions by(const char* who) {
        HoldOptions options;
        options.holder = {who, ""};
        options.ttl = lasting(1h);
        return options;
    }
    [[nodiscard]] HoldOptions observed() {
        HoldOptions options = by("alice");
        options.observer = log_.observer();
        return options;
    }
    [[nodiscard]] LockStatus look() { return must(inner_->inspect(name_, Deadline::never())); }
    Answer<AsyncHold> ask(const HoldOptions& options) {
        Answer<AsyncHold> answer;
        async_->hold(name_, options, answer.handler());
        return answer;
    }
    [[nodiscard]] AsyncHold take(const HoldOptions& options) { return must(ask(options).get()); }
    void break_it(const AsyncHold& held) {
        must(inner_->apply_one(Break{name_, held.hold().credentials().lock_id, "ops", "wrong branch"},
                               Deadline::never()));
    }
    [[nodiscard]] bool becomes_free() {
        return becomes_true([&] { return look().state == LockState::free; });
    }
    [[nodiscard]] std::future<Error> loss_of(const AsyncHold& held, const std::stop_token& cancel = {}) {
        const auto why = std::make_shared<std::promise<Error>>();
        held.wait_for_loss(cancel, [why](const Error& error) { why->set_value(error); });
        return why->get_future();
    }

    EventLog log_;
    std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    std::optional<AsyncStore> async_ = must(AsyncStore::start(store_));
    const LockName name_ = lock("deploy/web");
};

TEST_F(AsyncHoldTest, IsRenewedUntilItIsReleased) {
    HoldOptions options = observed();
    options.renew_interval = 1ms;
    auto held = take(options);
    log_.await(renewed, 3);
    EXPECT_EQ(look().lease->lock_id, held.hold().credentials().lock_id);
    EXPECT_EQ(look().token, held.token());
    Answer<void> done;
    held.release(done.handler());
    EXPECT_THAT(done.get(), Granted());
    EXPECT_EQ(look().state, LockState::free);
    Answer<void> again;
    held.release(again.handler());
    EXPECT_THAT(again.get(), RefusedWith(Errc::lock_not_held));
    const auto kinds = log_.kinds();
    EXPECT_EQ(kinds.front(), acquiring);
    EXPECT_EQ(kinds.back(), released);
}

TEST_F(AsyncHoldTest, WaitsInTheQueueAndTellsWhoIsInTheWay) {
    auto alice = std::make_optional(take(by("alice")));
    HoldOptions options = by("bob");
    options.wait = 1min;
    options.observer = log_.observer();
    auto bob = ask(options);
    log_.await(blocked);
    alice.reset();
    auto held = must(bob.get());
    EXPECT_EQ(look().lease->holder.text, "bob");
    EXPECT_THAT(log_.kinds(), ElementsAre(acquiring, blocked, acquired));
}

TEST_F(AsyncHoldTest, TriesAgainAsOftenAsItWasTold) {
    auto alice = take(by("alice"));
    HoldOptions options = by("bob");
    options.retry = {.attempts = 2, .pause = 1ms};
    const int before = store_.acquires();
    EXPECT_THAT(ask(options).get(), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(store_.acquires() - before, 3);
}

TEST_F(AsyncHoldTest, ItsEndGivesTheLockBackWithoutWaiting) {
    {
        auto held = take(observed());
    }
    EXPECT_TRUE(becomes_free());
    log_.await(released);
}

TEST_F(AsyncHoldTest, TellsItsLossAtOnce) {
    auto held = take(observed());
    auto why = loss_of(held);
    break_it(held);
    ASSERT_EQ(why.wait_for(time_limit), std::future_status::ready) << "its lease lasts an hour";
    EXPECT_EQ(why.get().code, Errc::lock_not_held);
    EXPECT_TRUE(held.lost().stop_requested());
    log_.await(lost);
    EXPECT_THAT(held.loss()->message, AllOf(HasSubstr("taken away by ops"), HasSubstr("wrong branch")));
    EXPECT_EQ(loss_of(held).get().code, Errc::lock_not_held) << "also to whoever asks later";
    Answer<void> done;
    held.release(done.handler());
    EXPECT_THAT(done.get(), RefusedWith(Errc::lock_not_held));
}

TEST_F(AsyncHoldTest, WhoWaitsForALossHearsOfTheEnd) {
    auto held = std::make_optional(take(by("alice")));
    auto released = loss_of(*held);
    std::stop_source cancel;
    auto cancelled = loss_of(*held, cancel.get_token());
    cancel.request_stop();
    EXPECT_EQ(cancelled.get().code, Errc::cancelled);
    held.reset();
    EXPECT_EQ(released.get().code, Errc::cancelled);
}

TEST_F(AsyncHoldTest, AReleaseWhoseAnswerIsLostIsRepeated) {
    auto held = take(by("alice"));
    store_.lose_answers(1);
    Answer<void> done;
    held.release(done.handler());
    EXPECT_THAT(done.get(), Granted());

    auto unlucky = take(by("alice"));
    store_.lose_answers(2);
    Answer<void> unknown;
    unlucky.release(unknown.handler());
    EXPECT_THAT(unknown.get(), RefusedWith(Errc::outcome_unknown));
}

TEST_F(AsyncHoldTest, MayBeReleasedByItsOwnObserver) {
    std::optional<AsyncHold> held;
    Answer<void> done;
    HoldOptions options = by("alice");
    options.renew_interval = 1ms;
    std::atomic<bool> is_there = false;
    options.observer = [&](const HoldEvent& event) {
        if (event.kind == renewed && is_there.exchange(false)) held->release(done.handler());
    };
    held = take(options);
    is_there = true;
    EXPECT_THAT(done.get(), Granted());
}

TEST_F(AsyncHoldTest, OneThatIsGrantedTooLateIsGivenBack) {
    ManualClock clock;
    const auto inner = must(open_store("memory:", clock));
    FaultyStore slow(*inner);
    AsyncStore async = must(AsyncStore::start(slow));
    slow.before_answers([&, is_first = true]() mutable {
        if (std::exchange(is_first, false)) clock.advance(31s);
    });
    HoldOptions options;
    options.ttl = lasting(30s);
    Answer<AsyncHold> late;
    async.hold(name_, options, late.handler());
    EXPECT_THAT(late.get(), RefusedWith(Errc::lock_expired));
    EXPECT_EQ(must(inner->inspect(name_, Deadline::never())).state, LockState::free);
}

TEST_F(AsyncHoldTest, LivesOnWhenItsAsyncStoreEnds) {
    HoldOptions options = observed();
    options.renew_interval = 1ms;
    auto held = std::make_optional(take(options));
    async_.reset();
    const auto before = std::ranges::count(log_.kinds(), renewed);
    log_.await(renewed, static_cast<int>(before) + 2);
    EXPECT_EQ(loss_of(*held).get().code, Errc::cancelled);
    held.reset();
    EXPECT_EQ(look().state, LockState::free);
}

}  // namespace
}  // namespace holdfast::tests
