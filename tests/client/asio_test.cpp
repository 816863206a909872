// Goal: with Boost.Asio, locks are awaited as sockets and timers are: by coroutines, futures and callbacks, on their
// executors, cancelled by their slots, and gone with their context. Method: the memory store, and contexts that end at
// every point; a thousand holds and a thousand waiters in coroutines on two threads.
#include "holdfast/asio.hpp"

#include "client/faulty_store.hpp"
#include "client/watching.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"
#include "support/temp_folder.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <optional>
#include <thread>
#include <vector>

namespace holdfast::tests {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::use_awaitable;

class AsioTest : public testing::Test {
protected:
    [[nodiscard]] LockStatus look() { return must(inner_->inspect(name_, Deadline::never())); }
    [[nodiscard]] HoldOptions waiting(std::chrono::milliseconds wait = HoldOptions::forever) {
        HoldOptions options;
        options.ttl = lasting(1h);
        options.wait = wait;
        return options;
    }
    [[nodiscard]] bool has_waiters(unsigned count) {
        return becomes_true([&] { return look().waiters == count; });
    }
    Acquire taken_by_alice() {
        Acquire alice = by_alice(name_, 1h);
        must(inner_->apply_one(alice, Deadline::never()));
        return alice;
    }
    /// Runs it to its end on this thread.
    template <class Work>
    void run(Work work) {
        asio::co_spawn(*context_, std::move(work), [](const std::exception_ptr& error) {
            if (error) std::rethrow_exception(error);
        });
        context_->run();
        context_->restart();
    }

    std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    std::optional<AsyncStore> async_ = must(AsyncStore::start(store_));
    std::optional<asio::io_context> context_{std::in_place};
    const LockName name_ = lock("deploy/web");
};

// Whatever is made in braces is made before the co_await: GCC 12 destroys it twice otherwise.
TEST_F(AsioTest, ACoroutineHoldsRenewsAndReleases) {
    run([&]() -> asio::awaitable<void> {
        const auto here = std::this_thread::get_id();
        auto held = must(co_await async_hold(*async_, name_, waiting(), use_awaitable));
        EXPECT_EQ(std::this_thread::get_id(), here);
        const Renew again{name_, held.hold().credentials(), lasting(2h)};
        EXPECT_THAT(co_await async_renew(*async_, again, Deadline::never(), use_awaitable), Granted());
        const auto refused = co_await async_hold(*async_, name_, waiting(0ms), use_awaitable);
        EXPECT_THAT(refused, RefusedWith(Errc::lock_conflict));
        EXPECT_THAT(co_await async_release(held, use_awaitable), Granted());
        EXPECT_EQ(look().state, LockState::free);
    });
}

TEST_F(AsioTest, ACoroutineSendsRequests) {
    run([&]() -> asio::awaitable<void> {
        const auto granted = must(co_await async_acquire(*async_, by_bob(name_), 1min, use_awaitable));
        const Release back{name_, granted.as};
        EXPECT_THAT(co_await async_release(*async_, back, Deadline::never(), use_awaitable), Granted());
        std::vector<Request> both;
        both.emplace_back(by_alice(name_));
        both.emplace_back(by_bob(name_));
        const auto replies = must(co_await async_apply(*async_, both, Deadline::never(), use_awaitable));
        EXPECT_THAT(replies[1], RefusedWith(Errc::lock_conflict));
    });
}

TEST_F(AsioTest, ALossIsAwaitedBesideTheWork) {
    run([&]() -> asio::awaitable<void> {
        auto held = must(co_await async_hold(*async_, name_, waiting(), use_awaitable));
        must(inner_->apply_one(Break{name_, held.hold().credentials().lock_id, "ops", ""}, Deadline::never()));
        const Error why = co_await async_wait_for_loss(held, use_awaitable);
        EXPECT_EQ(why.code, Errc::lock_not_held);
        EXPECT_TRUE(held.lost().stop_requested());
    });
}

TEST_F(AsioTest, FuturesAndCallbacksWork) {
    auto future = async_acquire(*async_, by_alice(name_), 0ms, asio::use_future);
    const auto granted = must(future.get());
    auto released = async_release(*async_, Release{name_, granted.as}, Deadline::never(), asio::use_future);
    EXPECT_THAT(released.get(), Granted());

    asio::thread_pool pool(1);
    std::promise<bool> ran_there;
    const auto strand = asio::make_strand(pool);
    async_wait_for_change(*async_, {.name = name_}, Deadline::never(),
                          asio::bind_executor(strand, [&](const Result<std::optional<HandedOn>>&) {
                              ran_there.set_value(strand.running_in_this_thread());
                          }));
    EXPECT_TRUE(ran_there.get_future().get());
}

TEST_F(AsioTest, ItsSlotCancelsAWait) {
    taken_by_alice();
    asio::cancellation_signal signal;
    std::optional<Errc> ended;
    async_hold(*async_, name_, waiting(),
               asio::bind_cancellation_slot(
                   signal.slot(),
                   asio::bind_executor(*context_, [&](const Result<AsyncHold>& held) { ended = held.error().code; })));
    ASSERT_TRUE(has_waiters(1));
    signal.emit(asio::cancellation_type::terminal);
    context_->run();
    EXPECT_EQ(ended, Errc::cancelled);
    EXPECT_EQ(look().waiters, 0U);
}

TEST_F(AsioTest, TheStopTokenOfItsOptionsCancelsItToo) {
    taken_by_alice();
    std::stop_source cancel;
    HoldOptions options = waiting();
    options.cancel = cancel.get_token();
    auto held = async_hold(*async_, name_, options, asio::use_future);
    ASSERT_TRUE(has_waiters(1));
    cancel.request_stop();
    EXPECT_THAT(held.get(), RefusedWith(Errc::cancelled));
}

TEST_F(AsioTest, OfTwoThatAreAwaitedTheLoserLeavesTheQueue) {
    using namespace asio::experimental::awaitable_operators;
    taken_by_alice();
    const LockName other = lock("another");
    run([&]() -> asio::awaitable<void> {
        auto first = co_await (async_hold(*async_, name_, waiting(), use_awaitable) ||
                               async_hold(*async_, other, waiting(), use_awaitable));
        EXPECT_EQ(first.index(), 1U);
        EXPECT_EQ(look().waiters, 0U);
    });
}

TEST_F(AsioTest, AnExceptionLeavesRunAndHarmsNoOther) {
    async_apply_one(*async_, by_alice(name_), Deadline::never(),
                    asio::bind_executor(*context_, [](const Reply&) { throw std::runtime_error("mine"); }));
    EXPECT_THROW(context_->run(), std::runtime_error);
    bool ran = false;
    async_apply_one(*async_, by_bob(lock("another")), Deadline::never(),
                    asio::bind_executor(*context_, [&](const Reply& reply) { ran = reply.has_value(); }));
    context_->restart();
    context_->run();
    EXPECT_TRUE(ran);
}

TEST_F(AsioTest, AContextThatEndsTakesItsWaitersAlong) {
    const Acquire alice = taken_by_alice();
    const auto sign_of_life = std::make_shared<int>();
    bool was_called = false;
    async_hold(*async_, name_, waiting(),
               asio::bind_executor(*context_, [&, sign_of_life](const auto&) { was_called = true; }));
    ASSERT_TRUE(has_waiters(1));
    context_.reset();
    EXPECT_EQ(sign_of_life.use_count(), 1);
    EXPECT_TRUE(has_waiters(0));
    must(inner_->apply_one(release(alice), Deadline::never()));
    EXPECT_EQ(look().state, LockState::free);
    EXPECT_FALSE(was_called);
}

TEST_F(AsioTest, WhatIsGrantedToAContextThatHasEndedIsGivenBack) {
    // The context ends while the request is under way.
    store_.before_answers([this, is_first = true]() mutable {
        if (std::exchange(is_first, false)) context_.reset();
    });
    async_hold(*async_, name_, waiting(0ms), asio::bind_executor(*context_, [](const auto&) { ADD_FAILURE(); }));
    EXPECT_TRUE(becomes_true([&] { return store_.applied() >= 2 && look().state == LockState::free; }));
    async_.reset();
}

TEST_F(AsioTest, WhatWaitsForItsExecutorWhenThatEndsIsGivenBack) {
    HoldOptions options = waiting(0ms);
    std::promise<void> granted;
    options.observer = [&](const HoldEvent& event) {
        if (event.kind == HoldEventKind::acquired) granted.set_value();
    };
    async_hold(*async_, name_, options, asio::bind_executor(*context_, [](const auto&) { ADD_FAILURE(); }));
    granted.get_future().wait();
    context_.reset();
    EXPECT_TRUE(becomes_true([&] { return look().state == LockState::free; }));
}

TEST_F(AsioTest, ACoroutineThatEndsWithItsContextGivesItsHoldsBack) {
    taken_by_alice();
    const LockName other = lock("another");
    bool holds = false;
    asio::co_spawn(
        *context_,
        [&]() -> asio::awaitable<void> {
            auto held = must(co_await async_hold(*async_, other, waiting(), use_awaitable));
            holds = true;
            co_await async_hold(*async_, name_, waiting(), use_awaitable);
            ADD_FAILURE() << "nobody resumes it";
        },
        asio::detached);
    ASSERT_TRUE(becomes_true([&] {
        context_->poll();
        return holds && look().waiters == 1;
    }));
    context_.reset();
    EXPECT_TRUE(has_waiters(0));
    EXPECT_TRUE(becomes_true([&] { return must(inner_->inspect(other, Deadline::never())).state == LockState::free; }));
}

/// A thousand locks, each held by one coroutine and waited for by another.
class ManyCoroutines : public testing::TestWithParam<std::string> {
protected:
    asio::awaitable<void> hold_until_all_wait(int i) {
        auto held = must(co_await async_hold(*async_, job(i), options(), use_awaitable));
        ++held_;
        while (!may_release_) {
            asio::steady_timer pause(context_, 5ms);
            co_await pause.async_wait(use_awaitable);
        }
        EXPECT_FALSE(held.loss());
        must(co_await async_release(held, use_awaitable));
    }
    asio::awaitable<void> wait_for(int i) {
        auto held = must(co_await async_hold(*async_, job(i), options(), use_awaitable));
        ++served_;
        must(co_await async_release(held, use_awaitable));
    }
    [[nodiscard]] static LockName job(int i) { return lock(fmt::format("job/{:04}", i)); }
    [[nodiscard]] static HoldOptions options() {
        HoldOptions options;
        options.ttl = lasting(120s);
        options.wait = 10min;
        return options;
    }
    [[nodiscard]] std::uint64_t waiters() {
        std::uint64_t count = 0;
        for (const LockStatus& each : must(store_->list({.prefix = "job/"}, Deadline::never()))) count += each.waiters;
        return count;
    }
    template <class Work>
    void spawn(Work work) {
        asio::co_spawn(context_, std::move(work), [](const std::exception_ptr& error) {
            if (error) std::rethrow_exception(error);
        });
    }

    const TempFolder folder_;
    const std::string url_ =
        GetParam() == "memory" ? "memory:" : GetParam() + ":" + (folder_.path() / "store").string() + "?sync=off";
    std::unique_ptr<Store> store_ = must(open_store(url_));
    std::optional<AsyncStore> async_ = must(AsyncStore::start(*store_));
    asio::io_context context_;
    std::atomic<int> held_ = 0;
    std::atomic<int> served_ = 0;
    std::atomic<bool> may_release_ = false;
};

TEST_P(ManyCoroutines, AThousandHoldsAndAThousandWaitersNeedTwoThreadsAndThoseOfTheLibrary) {
    const int count = scaled(1000);
    for (int i = 0; i < count; ++i) spawn(hold_until_all_wait(i));
    std::vector<std::jthread> two;
    for (int i = 0; i < 2; ++i) two.emplace_back([&] { context_.run(); });
    ASSERT_TRUE(becomes_true([&] { return held_ == count; }));
    for (int i = 0; i < count; ++i) spawn(wait_for(i));
    std::ptrdiff_t most = 0;
    const auto count_threads = [&] { most = std::max(most, threads_of_the_library()); };
    ASSERT_TRUE(becomes_true([&] {
        count_threads();
        return waiters() == static_cast<std::uint64_t>(count);
    }));
    EXPECT_EQ(served_, 0);
    may_release_ = true;
    ASSERT_TRUE(becomes_true([&] {
        count_threads();
        return served_ == count;
    }));
    two.clear();
    fmt::print("{}: {} holds and {} waiters: at most {} threads of the library\n", GetParam(), count, count, most);
    // The timekeeper, the hub, one that takes turns; and one for each batch that takes long on a busy machine.
    EXPECT_LE(most, 16);
}

INSTANTIATE_TEST_SUITE_P(Stores, ManyCoroutines, testing::Values("memory", "sqlite"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
