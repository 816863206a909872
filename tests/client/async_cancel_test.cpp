// Goal: a cancelled call leaves nothing behind, or says that nobody knows: no place in the queue, no lock. Method: the
// stop token is used at each point that a call goes through, behind a line that loses answers.
#include "client/answer.hpp"
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

/// With and without a place in the queue.
class AsyncCancel : public testing::TestWithParam<std::chrono::milliseconds> {
protected:
    [[nodiscard]] LockStatus look() { return must(inner_->inspect(name_, Deadline::never())); }
    Answer<holdfast::Granted> acquire(const Acquire& request) { return acquire(request, GetParam()); }
    Answer<holdfast::Granted> acquire(const Acquire& request, std::chrono::milliseconds wait) {
        Answer<holdfast::Granted> answer;
        async_->acquire(request, wait, cancel_.get_token(), answer.handler());
        return answer;
    }
    /// While the first call to the store is under way: it was carried out, and its answer has not arrived.
    void cancel_before_the_answer() {
        store_.before_answers([this] { cancel_.request_stop(); });
    }

    std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    std::optional<AsyncStore> async_ = must(AsyncStore::start(store_));
    std::stop_source cancel_;
    const LockName name_ = lock("deploy/web");
};

TEST_P(AsyncCancel, BeforeItBeginsItAsksNobody) {
    cancel_.request_stop();
    EXPECT_THAT(acquire(by_bob(name_)).get(), RefusedWith(Errc::cancelled));
    EXPECT_EQ(store_.applied(), 0);
}

TEST_P(AsyncCancel, WhatWasGrantedMeanwhileIsGivenBack) {
    cancel_before_the_answer();
    EXPECT_THAT(acquire(by_bob(name_)).get(), RefusedWith(Errc::cancelled));
    EXPECT_EQ(look().state, LockState::free);
}

TEST_P(AsyncCancel, WhatMayHaveBeenGrantedIsGivenBack) {
    cancel_before_the_answer();
    store_.lose_answers(1);
    // The waiter that hears nothing keeps its word: nobody knew for a while.
    const auto refused = acquire(by_bob(name_)).get();
    EXPECT_TRUE(refused.error().code == Errc::cancelled || refused.error().code == Errc::outcome_unknown);
    EXPECT_EQ(look().state, LockState::free);
}

TEST_P(AsyncCancel, WhatMayNotBeGivenBackIsUnknown) {
    cancel_before_the_answer();
    store_.lose_answers(2);
    EXPECT_THAT(acquire(by_bob(name_)).get(), RefusedWith(Errc::outcome_unknown));
}

TEST_P(AsyncCancel, AGrantThatCannotBeGivenBackIsUnknown) {
    store_.before_answers([this] {
        cancel_.request_stop();
        store_.cut();
    });
    EXPECT_THAT(acquire(by_bob(name_)).get(), RefusedWith(Errc::outcome_unknown));
    EXPECT_EQ(look().state, LockState::held);
}

INSTANTIATE_TEST_SUITE_P(Waits, AsyncCancel, testing::Values(0ms, 60'000ms),
                         [](const auto& test) { return test.param == 0ms ? "AtOnce" : "InTheQueue"; });

using AsyncCancelInQueue = AsyncCancel;

TEST_P(AsyncCancelInQueue, GivesUpItsPlaceAndNoOther) {
    const Acquire alice = by_alice(name_, 1h);
    must(inner_->apply_one(alice, Deadline::never()));
    auto bob = acquire(by_bob(name_));
    ASSERT_TRUE(becomes_true([&] { return look().waiters == 1; }));
    Answer<holdfast::Granted> carol;
    async_->acquire(by_carol(name_), 1min, {}, carol.handler());
    ASSERT_TRUE(becomes_true([&] { return look().waiters == 2; }));

    cancel_.request_stop();
    const auto refused = bob.get();
    EXPECT_THAT(refused, RefusedWith(Errc::cancelled));
    EXPECT_EQ(refused.error().holder->lease->holder.text, "alice");
    EXPECT_EQ(look().waiters, 1U);
    must(inner_->apply_one(release(alice), Deadline::never()));
    EXPECT_THAT(carol.get(), Granted());
}

TEST_P(AsyncCancelInQueue, AChangeIsWaitedForNoLonger) {
    Answer<std::optional<HandedOn>> change;
    must(inner_->apply_one(by_alice(name_), Deadline::never()));
    async_->wait_for_change({.name = name_, .seen_seq = look().seq, .stop = cancel_.get_token()}, Deadline::never(),
                            change.handler());
    cancel_.request_stop();
    EXPECT_THAT(change.get(), RefusedWith(Errc::cancelled));
}

TEST_P(AsyncCancelInQueue, TheEndOfTheStoreEndsEveryWait) {
    must(inner_->apply_one(by_alice(name_, 1h), Deadline::never()));
    auto bob = acquire(by_bob(name_));
    Answer<std::optional<HandedOn>> change;
    ASSERT_TRUE(becomes_true([&] { return look().waiters == 1; }));
    async_->wait_for_change({.name = name_, .seen_seq = look().seq}, Deadline::never(), change.handler());
    async_.reset();
    ASSERT_TRUE(bob.is_there());
    EXPECT_THAT(bob.get(), RefusedWith(Errc::cancelled));
    EXPECT_TRUE(change.is_there());
    EXPECT_EQ(look().waiters, 0U);
}

TEST_P(AsyncCancelInQueue, TheEndOfTheStoreWaitsForWhatIsUnderWay) {
    Answer<Outcome> sent;
    async_->apply_one(by_alice(name_), Deadline::never(), sent.handler());
    async_.reset();
    ASSERT_TRUE(sent.is_there());
    EXPECT_THAT(sent.get(), Granted());
}

INSTANTIATE_TEST_SUITE_P(Waits, AsyncCancelInQueue, testing::Values(60'000ms),
                         [](const auto&) { return "InTheQueue"; });

}  // namespace
}  // namespace holdfast::tests
