// Goal: many subscriptions share one thread, each fires once, and none is called when it has ended, whatever happens at
// the same time. Method: a source that the test tells what to hear and what to see.

#include "stores/common/wake_hub.hpp"

#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <future>
#include <latch>
#include <map>

namespace holdfast::stores {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using tests::lock;
using tests::must;

/// What the test says is heard and seen.
class ScriptedSource final : public WakeSource {
public:
    void add(std::span<const HubWatch> watches) override {
        const std::scoped_lock guard(mutex_);
        for (const HubWatch& watch : watches) steps_.push_back("add " + watch.watch.name.text());
        changed_.notify_all();
    }
    void remove(std::span<const HubWatch> watches) override {
        const std::scoped_lock guard(mutex_);
        for (const HubWatch& watch : watches) steps_.push_back("remove " + watch.watch.name.text());
        changed_.notify_all();
    }
    std::vector<Sighting> look(std::span<const HubWatch> watches) override {
        std::vector<Sighting> seen;
        {
            const std::scoped_lock guard(mutex_);
            for (const HubWatch& watch : watches) {
                steps_.push_back("look " + watch.watch.name.text());
                last_id_ = std::max(last_id_, watch.id);
                Sighting sighting{.next_look = 1h};
                if (const auto found = results_.find(watch.watch.name); found != results_.end())
                    sighting.fired = found->second;
                seen.push_back(std::move(sighting));
            }
            changed_.notify_all();
        }
        if (during_look) during_look();
        return seen;
    }
    Heard listen(std::chrono::milliseconds most) override {
        std::unique_lock guard(mutex_);
        changed_.wait_for(guard, most, [&] { return interrupted_ || heard_; });
        interrupted_ = false;
        return std::exchange(heard_, std::nullopt).value_or(Heard{});
    }
    void interrupt() override {
        const std::scoped_lock guard(mutex_);
        interrupted_ = true;
        changed_.notify_all();
    }

    /// From now on a look at `name` shows this.
    void show(const std::string& name, Result<std::optional<HandedOn>> result = std::nullopt) {
        const std::scoped_lock guard(mutex_);
        results_.insert_or_assign(lock(name), std::move(result));
    }
    void hear(Heard heard) {
        const std::scoped_lock guard(mutex_);
        heard_ = std::move(heard);
        changed_.notify_all();
    }
    /// Waits until `step` has happened `count` times.
    void await(const std::string& step, std::ptrdiff_t count = 1) {
        std::unique_lock guard(mutex_);
        changed_.wait(guard, [&] { return std::ranges::count(steps_, step) >= count; });
    }
    [[nodiscard]] std::vector<std::string> steps() {
        const std::scoped_lock guard(mutex_);
        return steps_;
    }
    [[nodiscard]] std::uint64_t last_id() {
        const std::scoped_lock guard(mutex_);
        return last_id_;
    }

    std::function<void()> during_look{};  ///< Set before the first subscription.

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> steps_{};
    std::map<LockName, Result<std::optional<HandedOn>>> results_{};
    std::optional<Heard> heard_{};
    std::uint64_t last_id_ = 0;
    bool interrupted_ = false;
};

class WakeHubTest : public testing::Test {
protected:
    [[nodiscard]] std::unique_ptr<Subscription> subscribe(
        const std::string& name, WatchFired fired = [](auto) {}, std::optional<LockId> ticket = std::nullopt) {
        return must(hub_->subscribe({.name = lock(name), .ticket = ticket}, std::move(fired)));
    }
    /// The same, when the source has looked for the first time.
    [[nodiscard]] std::unique_ptr<Subscription> subscribe_and_look(
        const std::string& name, WatchFired fired = [](auto) {}, std::optional<LockId> ticket = std::nullopt) {
        auto subscription = subscribe(name, std::move(fired), ticket);
        source_->await("look " + name);
        return subscription;
    }
    void announce(const std::string& name, std::optional<LockId> next, bool with_record = true) {
        Change change{.name = lock(name), .next = next};
        if (with_record) change.record = kernel::blank(lock(name));
        hub_->announce({&change, 1});
    }

    ManualClock clock_;
    ScriptedSource* source_ = new ScriptedSource;  ///< Belongs to the hub.
    std::optional<WakeHub> hub_{std::in_place, clock_, std::unique_ptr<WakeSource>(source_)};
    const LockId mine_ = Credentials::random().lock_id;
    const LockId other_ = Credentials::random().lock_id;
};

TEST_F(WakeHubTest, TheSourceHearsOfAWatchBeforeItLooksAndWhenItHasFired) {
    source_->show("x");
    std::promise<void> fired;
    const auto watch = subscribe("x", [&](auto) { fired.set_value(); });
    fired.get_future().wait();
    source_->await("remove x");
    EXPECT_THAT(source_->steps(), ElementsAre("add x", "look x", "remove x"));
}

TEST_F(WakeHubTest, AWatchFiresOnce) {
    std::atomic<int> count = 0;
    source_->show("x");
    std::promise<void> fired;
    const auto watch = subscribe("x", [&](auto) {
        if (++count == 1) fired.set_value();
    });
    fired.get_future().wait();
    const auto later = subscribe_and_look("later");
    announce("x", std::nullopt);
    source_->hear({.all = true});
    source_->await("look later", 2);
    EXPECT_EQ(count, 1);
}

TEST_F(WakeHubTest, AnAnnouncementWakesTheTicketThatItNamesAndNobodyElse) {
    const auto mine = subscribe_and_look("x", [](auto) {}, mine_);
    const auto other = subscribe("x", [](auto) {}, other_);
    source_->await("look x", 2);
    const auto elsewhere = subscribe_and_look("y", [](auto) {}, mine_);
    const auto without = subscribe("x");
    source_->await("look x", 3);
    announce("x", mine_, false);
    source_->await("look x", 4);
    // What is heard next is looked at after everything that was woken by then.
    source_->hear({.ids = {source_->last_id()}});
    source_->await("look x", 5);
    EXPECT_EQ(std::ranges::count(source_->steps(), "look x"), 5);
    EXPECT_EQ(std::ranges::count(source_->steps(), "look y"), 1);
}

TEST_F(WakeHubTest, AnAnnouncementOfANewRecordWakesAllWatchesOfTheLockWithoutATicket) {
    const auto first = subscribe_and_look("x");
    const auto second = subscribe("x");
    source_->await("look x", 2);
    const auto in_line = subscribe_and_look("y", [](auto) {}, mine_);
    announce("y", std::nullopt);
    announce("x", std::nullopt);
    source_->await("look x", 4);
    EXPECT_EQ(std::ranges::count(source_->steps(), "look y"), 1);
}

TEST_F(WakeHubTest, AnAnnouncementOfALostLeaseWakesItsHolderAndARenewalDoesNot) {
    std::promise<void> fired;
    const auto holder = must(hub_->subscribe({.name = lock("x"), .lease = mine_}, [&](auto) { fired.set_value(); }));
    source_->await("look x");
    announce("x", std::nullopt);
    // What is heard next is looked at after everything that was woken by then.
    const auto other = subscribe_and_look("y");
    EXPECT_EQ(std::ranges::count(source_->steps(), "look x"), 1);
    source_->show("x");
    Change change{.name = lock("x"), .record = kernel::blank(lock("x")), .lost_lease = mine_};
    hub_->announce({&change, 1});
    fired.get_future().wait();
}

TEST_F(WakeHubTest, AnAnnouncementDuringALookIsNotLost) {
    std::promise<void> looking;
    std::promise<void> announced;
    bool is_first = true;
    source_->during_look = [&] {
        if (!std::exchange(is_first, false)) return;
        looking.set_value();
        announced.get_future().wait();
    };
    std::promise<void> fired;
    const auto watch = subscribe("x", [&](auto) { fired.set_value(); }, mine_);
    looking.get_future().wait();
    // That look has seen nothing yet.
    source_->show("x");
    announce("x", mine_);
    announced.set_value();
    fired.get_future().wait();
}

TEST_F(WakeHubTest, LostWakeUpsMakeItLookAtEverything) {
    const auto x = subscribe_and_look("x");
    const auto y = subscribe_and_look("y", [](auto) {}, mine_);
    source_->hear({.all = true});
    source_->await("look x", 2);
    source_->await("look y", 2);
}

TEST_F(WakeHubTest, WhatIsNotHeardOfIsLookedAtWhenItsTimeHasCome) {
    const auto watch = subscribe_and_look("x");
    clock_.advance(1h);
    source_->await("look x", 2);
}

TEST_F(WakeHubTest, AnErrorOfALookReachesItsSubscriberAlone) {
    source_->show("broken", fail(Errc::record_corrupt, "x"));
    std::promise<Result<std::optional<HandedOn>>> heard;
    const auto fine = subscribe_and_look("fine", [](auto) { ADD_FAILURE() << "nothing happened to it"; });
    const auto broken = subscribe("broken", [&](auto result) { heard.set_value(std::move(result)); });
    EXPECT_THAT(heard.get_future().get(), tests::RefusedWith(Errc::record_corrupt));
}

TEST_F(WakeHubTest, TheEndOfASubscriptionWaitsForItsFunction) {
    source_->show("x");
    std::promise<void> running;
    std::atomic<bool> is_ending = false;
    std::atomic<bool> has_returned = false;
    auto watch = subscribe("x", [&](auto) {
        running.set_value();
        while (!is_ending) std::this_thread::yield();
        for (int i = 0; i < 1000; ++i) std::this_thread::yield();
        has_returned = true;
    });
    running.get_future().wait();
    is_ending = true;
    watch.reset();
    EXPECT_TRUE(has_returned);
}

// Repeated, because the two have to meet.
TEST_F(WakeHubTest, NoFunctionIsCalledWhenItsSubscriptionHasEnded) {
    source_->show("x");
    for (int round = 0; round < 2000; ++round) {
        std::atomic<bool> may_run = true;
        auto watch = subscribe("x", [&](auto) { EXPECT_TRUE(may_run); });
        if (round % 2 == 0) std::this_thread::yield();
        watch.reset();
        may_run = false;
    }
}

TEST_F(WakeHubTest, ASubscriptionCanEndInsideItsOwnFunctionAndEndOthers) {
    source_->show("x");
    auto other = subscribe_and_look("y");
    std::unique_ptr<Subscription> own;
    std::promise<void> stored;
    std::promise<void> ended;
    own = subscribe("x", [&](auto) {
        stored.get_future().wait();
        own.reset();
        other.reset();
        ended.set_value();
    });
    stored.set_value();
    ended.get_future().wait();
    source_->await("remove y");
}

TEST_F(WakeHubTest, AFunctionMayOwnASubscription) {
    struct Owner {
        std::unique_ptr<Subscription> subscription{};
    };
    auto owned = std::make_shared<Owner>(subscribe_and_look("y"));
    auto ends_with_handle = subscribe_and_look("z", [owned](auto) {});
    owned.reset();
    ends_with_handle.reset();
    source_->await("remove y");

    auto second = std::make_shared<Owner>(subscribe("y"));
    source_->await("look y", 2);
    source_->show("x");
    const auto ends_when_fired = subscribe("x", [second = std::move(second)](auto) {});
    source_->await("remove y", 2);
}

TEST_F(WakeHubTest, AHubEndsWhileItListensAndWhileNobodyWatches) {
    {
        const auto watch = subscribe_and_look("x");
    }
    hub_.reset();
    SUCCEED();
}

TEST_F(WakeHubTest, TheThreadStartsWithTheFirstWatchAndIsTheOnlyOne) {
    const auto threads = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); };
    const auto before = threads();
    std::vector<std::unique_ptr<Subscription>> watches;
    for (int i = 0; i < 100; ++i) watches.push_back(subscribe("x"));
    source_->await("look x", 100);
    EXPECT_EQ(threads(), before + 1);
}

TEST_F(WakeHubTest, SignalsAreLeftToTheProgramsOwnThreads) {
    source_->show("x");
    std::promise<bool> blocked;
    const auto watch = subscribe("x", [&](auto) {
        sigset_t set;
        pthread_sigmask(SIG_BLOCK, nullptr, &set);
        blocked.set_value(sigismember(&set, SIGTERM) == 1 && sigismember(&set, SIGINT) == 1 &&
                          sigismember(&set, SIGCHLD) == 1);
    });
    EXPECT_TRUE(blocked.get_future().get());
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, nullptr, &set);
    EXPECT_EQ(sigismember(&set, SIGTERM), 0);
}

}  // namespace
}  // namespace holdfast::stores
