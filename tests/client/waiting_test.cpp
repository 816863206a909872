// Goal: waiting is fair, can be ended at once, and cannot deadlock within a thread or a group. Method: real
// threads on the memory and SQLite stores.

#include "client/event_log.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <random>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using enum HoldEventKind;

class WaitingTest : public testing::TestWithParam<std::string_view> {
protected:
    Deadline soon() const { return Deadline::in(host_clock(), 10s); }
    LockStatus look(const LockName& name) { return must(store_->inspect(name, soon())); }
    void await_waiters(const LockName& name, std::uint64_t count) {
        while (look(name).waiters != count) std::this_thread::yield();
    }
    static HoldOptions waiting(std::chrono::milliseconds wait = 60s) {
        HoldOptions options;
        options.ttl = lasting(5s);
        options.wait = wait;
        return options;
    }
    std::vector<HoldTarget> together(const std::vector<std::string>& names, const HoldOptions& options) {
        std::vector<HoldTarget> targets;
        for (const std::string& each : names) targets.push_back({store_.get(), lock(each), options});
        return targets;
    }
    std::string url() const {
        const std::string scheme(GetParam());
        return scheme == "memory" ? "memory:" : scheme + ":" + (folder_.path() / "store").string() + "?sync=off";
    }

    /// Of a waiter that is handed the lock.
    void expect_whole_ttl(HoldOptions options) {
        options.ttl = lasting(1h);
        auto first = must(hold(*store_, name_, waiting()));
        std::jthread next([&] {
            auto held = must(hold(*store_, name_, options));
            EXPECT_EQ(held.lease().expires_at - held.lease().renewed_at, 1h);
        });
        await_waiters(name_, 1);
        must(first.release());
    }

    TempFolder folder_;
    std::unique_ptr<Store> store_ = must(open_store(url()));
    const LockName name_ = lock("deploy/web");
};

TEST_P(WaitingTest, GrantsComeInTheOrderOfArrival) {
    auto first = must(hold(*store_, name_, waiting()));
    std::mutex mutex;
    std::vector<int> order;
    std::vector<std::jthread> waiters;
    for (int i = 0; i < 8; ++i) {
        waiters.emplace_back([&, i] {
            auto held = must(hold(*store_, name_, waiting()));
            const std::scoped_lock guard(mutex);
            order.push_back(i);
        });
        await_waiters(name_, static_cast<std::uint64_t>(i) + 1);
    }
    must(first.release());
    waiters.clear();
    EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
    EXPECT_EQ(look(name_).waiters, 0U);
}

TEST_P(WaitingTest, AWaiterIsHandedTheLockWithoutAskingForItAndRenewsIt) {
    auto first = must(hold(*store_, name_, waiting()));
    EventLog log;
    std::jthread next([&] {
        auto options = waiting();
        options.observer = log.observer();
        auto held = must(hold(*store_, name_, options));
        log.await(renewed);
        EXPECT_EQ(held.lease().expires_at - held.lease().renewed_at, 5s) << "it lasts its ttl now";
    });
    await_waiters(name_, 1);
    must(first.release());
    next.join();
    std::vector<EventKind> kinds;
    for (const AuditEvent& event : must(store_->history({.name = name_}, soon()))) kinds.push_back(event.kind);
    EXPECT_THAT(kinds, testing::ElementsAre(EventKind::acquired, EventKind::released, EventKind::acquired,
                                            EventKind::renewed, EventKind::released));
}

// Its place in the queue, and so its lease, lasts for seconds. A renewal whose answer it does not hear would shorten
// that.
TEST_P(WaitingTest, ALeaseThatWasHandedOnIsTrustedForItsTtlAtMost) {
    auto first = must(hold(*store_, name_, waiting()));
    std::jthread next([&] {
        auto options = waiting();
        options.ttl = lasting(1s);
        options.renew_from = RenewFrom::the_call;
        auto held = must(hold(*store_, name_, options));
        EXPECT_GT(held.lease().expires_at - held.lease().acquired_at, 1s);
        EXPECT_LT(held.deadline(), host_clock().boottime() + 1s);
    });
    await_waiters(name_, 1);
    must(first.release());
}

TEST_P(WaitingTest, AHolderThatDoesNotRenewHasItsWholeTtlFromTheBeginning) {
    auto options = waiting();
    options.renew = false;
    expect_whole_ttl(options);
}

TEST_P(WaitingTest, AHolderThatNeedsLongToStopHasItsWholeTtlFromTheBeginning) {
    auto options = waiting();
    options.time_to_stop = 20min;
    expect_whole_ttl(options);
}

TEST_P(WaitingTest, ACancelledWaiterLeavesTheQueueAtOnceAndTheNextIsServed) {
    auto first = must(hold(*store_, name_, waiting()));
    std::stop_source cancel;
    std::jthread impatient([&] {
        auto options = waiting();
        options.cancel = cancel.get_token();
        EXPECT_THAT(hold(*store_, name_, options), RefusedWith(Errc::cancelled));
    });
    await_waiters(name_, 1);
    std::jthread patient([&] { EXPECT_THAT(hold(*store_, name_, waiting()), Granted()); });
    await_waiters(name_, 2);
    cancel.request_stop();
    impatient.join();
    EXPECT_EQ(look(name_).waiters, 1U);
    must(first.release());
}

TEST_P(WaitingTest, AWaitThatRunsOutNamesTheHolderAndLeavesNoTicket) {
    must(store_->apply_one(by_bob(name_), soon()));
    const auto refused = hold(*store_, name_, waiting(150ms));
    ASSERT_THAT(refused, RefusedWith(Errc::timed_out));
    EXPECT_EQ(refused.error().holder->lease->holder.text, "bob");
    EXPECT_EQ(look(name_).waiters, 0U);
}

TEST_P(WaitingTest, TakesTheLockOfAHolderThatDied) {
    must(store_->apply_one(by_bob(name_, 200ms), soon()));
    auto held = must(hold(*store_, name_, waiting()));
    ASSERT_TRUE(held.stolen_from());
    EXPECT_EQ(held.stolen_from()->holder.text, "bob");
}

TEST_P(WaitingTest, AThreadThatWouldWaitForItselfIsRefused) {
    auto held = must(hold(*store_, name_, waiting()));
    EXPECT_THAT(hold(*store_, name_, waiting()), RefusedWith(Errc::usage));
    auto at_once = waiting(0ms);
    EXPECT_THAT(hold(*store_, name_, at_once), RefusedWith(Errc::lock_conflict)) << "who does not wait cannot deadlock";
}

TEST_P(WaitingTest, AThreadThatWaitsAgainstTheOrderIsRefusedAndAnotherThreadIsNot) {
    auto later = must(hold(*store_, lock("b"), waiting()));
    EXPECT_THAT(hold(*store_, lock("a"), waiting()), RefusedWith(Errc::usage));
    EXPECT_THAT(hold(*store_, lock("c"), waiting()), Granted());
    std::jthread([&] { EXPECT_THAT(hold(*store_, lock("a"), waiting()), Granted()); }).join();
    must(later.release());
    EXPECT_THAT(hold(*store_, lock("a"), waiting()), Granted());
}

// A program in which one thread takes the locks, and others work under them.
TEST_P(WaitingTest, AHoldThatIsPassedOnCountsForTheThreadThatWorksWithIt) {
    const auto later = std::make_unique<Hold>(must(hold(*store_, lock("b"), waiting())));
    EXPECT_THAT(hold(*store_, lock("a"), waiting()), Granted()) << "it is on its way to another thread";
    std::jthread([&] {
        EXPECT_TRUE(later->token().value > 0);
        EXPECT_THAT(hold(*store_, lock("a"), waiting()), RefusedWith(Errc::usage)) << "this thread works with it";
    }).join();
    EXPECT_THAT(hold(*store_, lock("a"), waiting()), Granted());
    const Hold back = std::move(*later);
    EXPECT_THAT(hold(*store_, lock("a"), waiting()), RefusedWith(Errc::usage)) << "it was moved to this thread";
}

TEST_P(WaitingTest, TheOrderIsNotCheckedWhereThatIsSwitchedOff) {
    auto unchecked = waiting();
    unchecked.order_check = OrderCheck::off;
    const auto one = must(hold(*store_, lock("b"), unchecked));
    const auto two = must(hold(*store_, lock("c"), waiting()));
    EXPECT_THAT(hold(*store_, lock("a"), waiting()), RefusedWith(Errc::usage)) << "because of c";
    EXPECT_THAT(hold(*store_, lock("a"), unchecked), Granted());
    EXPECT_THAT(hold(*store_, lock("bb"), waiting()), RefusedWith(Errc::usage)) << "because of c, and not of b";
}

TEST_P(WaitingTest, TheObserverHearsOnceOfEachLeaseThatIsInTheWay) {
    const Acquire bob = by_bob(name_, 1h);
    const Acquire carol = by_carol(name_, 1h);
    must(store_->apply_one(bob, soon()));
    std::mutex mutex;
    std::vector<std::string> in_the_way;
    std::jthread waiter([&] {
        auto options = waiting();
        options.observer = [&](const HoldEvent& event) {
            if (event.kind != blocked) return;
            const std::scoped_lock guard(mutex);
            in_the_way.push_back(event.cause->holder->lease->holder.text);
        };
        EXPECT_THAT(hold(*store_, name_, options), Granted());
    });
    await_waiters(name_, 1);
    // Another state of the lock, and no other lease.
    must(store_->apply_one(renewal(bob), soon()));
    must(store_->apply_one(Transfer{name_, bob.as, carol.holder, carol.as, ""}, soon()));
    const Deadline end = Deadline::in(host_clock(), 60s);
    const auto heard = [&] {
        const std::scoped_lock guard(mutex);
        return in_the_way.size();
    };
    while (heard() < 2 && !end.passed(host_clock())) std::this_thread::yield();
    must(store_->apply_one(release(carol), soon()));
    waiter.join();
    EXPECT_THAT(in_the_way, testing::ElementsAre("bob", "carol"));
}

TEST_P(WaitingTest, AGroupIsAllOrNothing) {
    must(store_->apply_one(by_bob(lock("m")), soon()));
    const auto refused = hold_all(together({"z", "a", "m"}, waiting(0ms)));
    ASSERT_THAT(refused, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(refused.error().holder->name, lock("m"));
    EXPECT_EQ(look(lock("a")).state, LockState::free);
    EXPECT_EQ(look(lock("z")).state, LockState::free);
    EXPECT_EQ(look(lock("z")).seq, 0U) << "a lock behind the refused one was touched";
}

TEST_P(WaitingTest, AGroupHasOneTokenEachAndIsLostWhenAnyIsLost) {
    EventLog log;
    auto options = waiting();
    options.ttl = lasting(600ms);
    options.observer = log.observer();
    auto group = must(hold_all(together({"b", "a"}, options)));
    EXPECT_EQ(group.holds().front().name(), lock("a"));
    EXPECT_EQ(group.find(lock("b"))->token(), look(lock("b")).token);
    must(store_->apply_one(Break{lock("b"), group.find(lock("b"))->credentials().lock_id, "operator", ""}, soon()));
    log.await(lost);
    ASSERT_TRUE(group.loss());
    EXPECT_THAT(group.release(), RefusedWith(Errc::lock_not_held));
    EXPECT_EQ(look(lock("a")).state, LockState::free);
}

TEST_P(WaitingTest, AskingTwiceForOneLockInAGroupIsRefused) {
    EXPECT_THAT(hold_all(together({"a", "a"}, waiting())), RefusedWith(Errc::usage));
}

// Every thread asks for the locks in an order of its own; the group puts them into one.
TEST_P(WaitingTest, GroupsInRandomOrderNeverDeadlockAndNeverOverlap) {
    const auto seed = seed_of("groups in random order");
    constexpr int threads = 4;
    const int rounds = scaled(15);
    std::array<std::atomic<int>, 5> inside{};
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t) {
        workers.emplace_back([&, t] {
            std::mt19937_64 random(seed + static_cast<std::uint64_t>(t));
            for (int round = 0; round < rounds; ++round) {
                std::vector<std::size_t> all{0, 1, 2, 3, 4};
                std::ranges::shuffle(all, random);
                all.resize(2 + random() % 3);
                std::vector<std::string> names;
                for (const std::size_t i : all) names.push_back("lock" + std::to_string(i));
                auto group = must(hold_all(together(names, waiting())));
                for (const std::size_t i : all) EXPECT_EQ(inside[i].fetch_add(1), 0);
                for (const std::size_t i : all) inside[i].fetch_sub(1);
                must(group.release());
            }
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Stores, WaitingTest, testing::Values("memory", "file", "sqlite"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace holdfast::tests
