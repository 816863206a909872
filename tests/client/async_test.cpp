// Goal: calls without a thread gather in batches, wait in the fair queue, and end in three ways as every call does; a
// call that hangs holds up no other. Method: the memory store behind a line that fails, and a clock that the test moves
// where time matters.
#include "holdfast/async.hpp"

#include "client/answer.hpp"
#include "client/faulty_store.hpp"
#include "client/watching.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <latch>
#include <mutex>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class AsyncTest : public testing::Test {
protected:
    ~AsyncTest() override { store_.let_go(); }

    [[nodiscard]] Deadline soon() const { return Deadline::in(clock_, 5s); }
    [[nodiscard]] LockStatus look(const LockName& name) { return must(inner_->inspect(name, soon())); }
    void await_waiters(unsigned count) {
        ASSERT_TRUE(becomes_true([&] { return look(name_).waiters == count; })) << look(name_).waiters;
    }
    Answer<holdfast::Granted> acquire(const Acquire& request, std::chrono::milliseconds wait) {
        Answer<holdfast::Granted> answer;
        async_.acquire(request, wait, {}, answer.handler());
        return answer;
    }
    Answer<Outcome> send(const Request& request) {
        Answer<Outcome> answer;
        async_.apply_one(request, soon(), answer.handler());
        return answer;
    }

    ManualClock clock_;
    std::unique_ptr<Store> inner_ = must(open_store("memory:", clock_));
    FaultyStore store_{*inner_};
    AsyncStore async_ = must(AsyncStore::start(store_));
    const LockName name_ = lock("deploy/web");
};

TEST_F(AsyncTest, WhatArrivesWhileABatchIsUnderWayIsSentTogether) {
    std::latch is_under_way(1);
    std::latch may_go_on(1);
    store_.before_calls([&, calls = 0]() mutable {
        if (++calls > 1) return;
        is_under_way.count_down();
        may_go_on.wait();
    });
    auto first = send(by_alice(name_));
    is_under_way.wait();
    std::vector<Answer<Outcome>> others;
    for (int i = 0; i < 20; ++i) others.push_back(send(by_bob(lock(fmt::format("job/{}", i)))));
    may_go_on.count_down();
    EXPECT_THAT(first.get(), Granted());
    for (auto& other : others) EXPECT_THAT(other.get(), Granted());
    EXPECT_EQ(store_.applied(), 2);
}

TEST_F(AsyncTest, AnswersOfABatchStandInItsOrder) {
    Answer<std::vector<Reply>> answer;
    const Acquire alice = by_alice(name_);
    async_.apply({alice, by_bob(name_), release(alice)}, soon(), answer.handler());
    const auto replies = must(answer.get());
    ASSERT_EQ(replies.size(), 3U);
    EXPECT_THAT(replies[0], Granted());
    EXPECT_THAT(replies[1], RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(replies[2], Granted());
}

TEST_F(AsyncTest, HandlersRunOnThreadsOfTheLibraryAndOneAtATime) {
    std::atomic<int> running = 0;
    std::atomic<int> most = 0;
    std::atomic<bool> is_on_this_thread = false;
    std::latch all(50);
    const auto here = std::this_thread::get_id();
    for (int i = 0; i < 50; ++i)
        async_.apply_one(by_alice(lock(fmt::format("job/{}", i))), soon(), [&](const Reply&) {
            most = std::max(most.load(), ++running);
            if (std::this_thread::get_id() == here) is_on_this_thread = true;
            std::this_thread::yield();
            --running;
            all.count_down();
        });
    all.wait();
    EXPECT_EQ(most, 1);
    EXPECT_FALSE(is_on_this_thread);
}

TEST_F(AsyncTest, WaitersAreServedInTheirOrder) {
    const Acquire alice = by_alice(name_);
    must(send(alice).get());
    auto bob = acquire(by_bob(name_), 1min);
    await_waiters(1);
    auto carol = acquire(by_carol(name_), 1min);
    await_waiters(2);
    must(send(release(alice)).get());
    const auto granted = must(bob.get());
    EXPECT_EQ(granted.lock.lease->holder.text, "bob");
    EXPECT_FALSE(carol.is_there());
    must(send(Release{name_, granted.as}).get());
    EXPECT_EQ(must(carol.get()).lock.lease->holder.text, "carol");
}

TEST_F(AsyncTest, WithoutAWaitItIsRefusedAtOnceAndLeavesNoTicket) {
    must(send(by_alice(name_)).get());
    const auto refused = acquire(by_bob(name_), 0ms).get();
    EXPECT_THAT(refused, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(refused.error().holder->lease->holder.text, "alice");
    EXPECT_EQ(look(name_).waiters, 0U);
}

TEST_F(AsyncTest, AWaitThatRunsOutLeavesTheQueue) {
    must(send(by_alice(name_, 1h)).get());
    auto bob = acquire(by_bob(name_), 10s);
    await_waiters(1);
    // It may be asking just now, and what is not sent in time is refused. So it sleeps first.
    ASSERT_TRUE(becomes_true([&] { return store_.watches() >= 1; }));
    clock_.advance(11s);
    EXPECT_THAT(bob.get(), RefusedWith(Errc::timed_out));
    EXPECT_EQ(look(name_).waiters, 0U);
}

TEST_F(AsyncTest, ThreeEndingsStayThree) {
    store_.cut();
    EXPECT_THAT(send(by_alice(name_)).get(), RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(look(name_).state, LockState::free);
    store_.heal();
    store_.lose_answers(1);
    EXPECT_THAT(send(by_alice(name_)).get(), RefusedWith(Errc::outcome_unknown));
    EXPECT_EQ(look(name_).state, LockState::held);
    EXPECT_THAT(send(by_bob(name_)).get(), RefusedWith(Errc::lock_conflict));
}

TEST_F(AsyncTest, AWaitGoesOnWhileTheStoreIsAwayOrItsAnswersAreLost) {
    // Real time, in which it keeps its place.
    const auto inner = must(open_store("memory:"));
    FaultyStore away(*inner);
    AsyncStore async = must(AsyncStore::start(away));
    const Acquire alice = by_alice(name_, 1h);
    must(inner->apply_one(alice, Deadline::never()));
    Answer<holdfast::Granted> bob;
    async.acquire(queued(by_bob(name_), 3s), 1h, {}, bob.handler());
    ASSERT_TRUE(becomes_true([&] { return must(inner->inspect(name_, Deadline::never())).waiters == 1; }));
    away.cut();
    const int before = away.applied();
    ASSERT_TRUE(becomes_true([&] { return away.applied() > before; })) << "it asks again to keep its place";
    away.lose_answers(1);
    away.heal();
    must(inner->apply_one(release(alice), Deadline::never()));
    EXPECT_THAT(bob.get(), Granted());
}

TEST_F(AsyncTest, ACallThatHangsHoldsUpItsLockAndNoOther) {
    // Real time: how long a call may take before another thread comes.
    const auto inner = must(open_store("memory:"));
    FaultyStore stuck(*inner);
    AsyncStore async = must(AsyncStore::start(stuck));
    stuck.hang(1);
    Answer<Outcome> hanging;
    Answer<Outcome> behind;
    Answer<Outcome> other;
    async.apply_one(by_alice(name_), Deadline::never(), hanging.handler());
    ASSERT_TRUE(becomes_true([&] { return stuck.applied() == 1; }));
    async.apply_one(by_bob(name_), Deadline::never(), behind.handler());
    async.apply_one(by_bob(lock("another")), Deadline::never(), other.handler());
    EXPECT_THAT(other.get(), Granted());
    EXPECT_FALSE(hanging.is_there());
    EXPECT_FALSE(behind.is_there());
    stuck.let_go();
    EXPECT_THAT(hanging.get(), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(behind.get(), Granted());
}

TEST_F(AsyncTest, AChangeIsToldToWhoWaitsForIt) {
    const Acquire alice = by_alice(name_, 1h);
    must(send(alice).get());
    Answer<std::optional<HandedOn>> change;
    async_.wait_for_change({.name = name_, .seen_seq = look(name_).seq}, Deadline::never(), change.handler());
    must(send(release(alice)).get());
    EXPECT_THAT(change.get(), Granted());

    Answer<std::optional<HandedOn>> nothing;
    async_.wait_for_change({.name = name_, .seen_seq = look(name_).seq}, Deadline::in(clock_, 10s), nothing.handler());
    clock_.advance(11s);
    EXPECT_FALSE(must(nothing.get()).has_value());
}

TEST_F(AsyncTest, AHandlerMayMakeTheNextCall) {
    Answer<Outcome> released;
    const Acquire alice = by_alice(name_);
    async_.apply_one(alice, soon(), [&](const Reply& granted) {
        must(granted);
        async_.apply_one(release(alice), soon(), released.handler());
    });
    EXPECT_THAT(released.get(), Granted());
}

using AsyncDeathTest = AsyncTest;

TEST_F(AsyncDeathTest, AnExceptionThatLeavesAHandlerEndsTheProgram) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            async_.apply_one(by_alice(name_), soon(),
                             [](const Reply&) { throw std::runtime_error("out of a handler"); });
            std::promise<void>().get_future().wait();
        },
        "out of a handler");
}

}  // namespace
}  // namespace holdfast::tests
