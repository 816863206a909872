// Goal: the holder of a lease hears that somebody ended it, whoever did and from wherever, and hears of nothing else.
// Method: the clock of these tests stands still, so that nothing but the store can tell it.
#include "conformance/store_conformance.hpp"
#include "support/watched_lock.hpp"

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::tests {

using namespace std::chrono_literals;

namespace {

Watch watch_of(const Acquire& holder) { return {.name = holder.name, .lease = holder.as.lock_id}; }

Break breaking(const Acquire& victim) { return {victim.name, victim.as.lock_id, "alice@ops", "wrong branch"}; }

Ask question(const Acquire& asker) { return {asker.name, asker.as, asker.holder, "", asker.ttl, lasting(1h)}; }

Answer approval(const Ask& question) { return {question.name, question.as.lock_id, Verdict::approve, "ops"}; }

std::ptrdiff_t threads_of_this_process() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

}  // namespace

TEST_P(StoreConformance, AHolderHearsThatItsLeaseWasBrokenByAnotherStoreObject) {
    if (!properties().is_shared) GTEST_SKIP() << GetParam().name << " belongs to one Store object";
    const auto other = must(harness().open_another());
    for (int round = 0; round < 3; ++round) {
        const Acquire alice = by_alice(lock("x"), 1h);
        granted(alice);
        WatchedLock watched(store(), watch_of(alice));
        must(other->apply_one(breaking(alice), soon()));
        ASSERT_TRUE(watched.fires());
        EXPECT_THAT(watched.result(), Granted());
    }
}

TEST_P(StoreConformance, AHolderHearsOfEveryWayToLoseItsLease) {
    const Acquire bob = by_bob(lock("x"), 1h);
    const Ask asked = question(bob);
    const auto loses = [&](const auto& lose) {
        const Acquire alice = by_alice(lock("x"), 1h);
        granted(alice);
        WatchedLock watched(store(), watch_of(alice));
        lose(alice);
        EXPECT_TRUE(watched.fires());
    };
    loses([&](const Acquire& alice) { granted(breaking(alice)); });
    loses([&](const Acquire& alice) {
        const Credentials to = Credentials::random();
        granted(Transfer{lock("x"), alice.as, {"bob", ""}, to, ""});
        granted(Release{lock("x"), to});
    });
    loses([&](const Acquire&) {
        granted(asked);
        granted(approval(asked));
        granted(Release{lock("x"), bob.as});
    });
    loses([&](const Acquire&) {
        elapse(2h);
        const Acquire thief = by_bob(lock("x"), 1h);
        granted(thief);
        granted(release(thief));
    });
    // By somebody else who has the lease.
    loses([&](const Acquire& alice) {
        granted(release(alice));
        elapse(2h);
    });
}

TEST_P(StoreConformance, AHolderHearsNothingWhileItHasItsLease) {
    const Acquire alice = by_alice(lock("x"), 24h);
    granted(alice);
    std::atomic<bool> is_lost = false;
    std::promise<bool> fired;
    const auto subscription = must(store().subscribe(watch_of(alice), [&](const auto&) { fired.set_value(is_lost); }));
    for (int i = 0; i < 20; ++i) {
        granted(renewal(alice));
        // A waiter comes and goes.
        const Acquire bob = queued(by_bob(lock("x")), 1h);
        EXPECT_FALSE(apply(bob));
        granted(Cancel{lock("x"), bob.as});
    }
    // Nor when the lease has run out, as long as nobody has taken the lock.
    elapse(48h);
    is_lost = true;
    granted(by_bob(lock("x")));
    EXPECT_TRUE(fired.get_future().get());
}

TEST_P(StoreConformance, AHolderHearsThatItsLeaseIsLostAlready) {
    const Acquire alice = by_alice(lock("x"), 1h);
    EXPECT_TRUE(WatchedLock(store(), watch_of(alice)).fires()) << "the store is not there yet";
    granted(alice);
    granted(breaking(alice));
    EXPECT_TRUE(WatchedLock(store(), watch_of(alice)).fires());
    EXPECT_TRUE(WatchedLock(store(), watch_of(by_alice(lock("never-used"), 1h))).fires());
}

TEST_P(StoreConformance, OneHolderIsNotWokenForAnother) {
    const Acquire alice = by_alice(lock("x"), 1h);
    const Acquire bob = by_bob(lock("y"), 1h);
    granted(alice);
    granted(bob);
    WatchedLock mine(store(), watch_of(alice));
    WatchedLock other(store(), watch_of(bob));
    granted(breaking(alice));
    EXPECT_TRUE(mine.fires());
    EXPECT_FALSE(other.has_fired());
    granted(breaking(bob));
    EXPECT_TRUE(other.fires());
}

// Two processes can have one lease: a command and one inside it that joined.
TEST_P(StoreConformance, AllWhoWatchALeaseHearThatItIsLost) {
    const auto other = properties().is_shared ? must(harness().open_another()) : nullptr;
    const Acquire alice = by_alice(lock("x"), 1h);
    granted(alice);
    WatchedLock outer(store(), watch_of(alice));
    WatchedLock inner(store(), watch_of(alice));
    std::optional<WatchedLock> joined;
    if (other) joined.emplace(*other, watch_of(alice));
    granted(breaking(alice));
    EXPECT_TRUE(outer.fires());
    EXPECT_TRUE(inner.fires());
    // One of two Store objects has the bell of the lease; the other looks by itself, and time stands still here.
    elapse(2s);
    if (joined) {
        EXPECT_TRUE(joined->fires());
    }
}

TEST_P(StoreConformance, ManyHoldersNeedOneThread) {
    std::vector<Request> holders;
    for (int i = 0; i < 200; ++i) holders.emplace_back(by_alice(lock("held/" + std::to_string(i)), 1h));
    for (const Reply& reply : must(store().apply(holders, soon()))) EXPECT_THAT(reply, Granted());
    std::atomic<int> lost = 0;
    std::vector<std::unique_ptr<Subscription>> watches;
    const auto before = threads_of_this_process();
    for (const Request& holder : holders)
        watches.push_back(must(store().subscribe(watch_of(std::get<Acquire>(holder)), [&](const auto&) {
            ++lost;
            lost.notify_all();
        })));
    // The daemon, which is in this process, watches its own store.
    const std::ptrdiff_t hubs = GetParam().is_daemon ? 2 : 1;
    EXPECT_LE(threads_of_this_process(), before + hubs);
    for (int i = 0; i < 3; ++i) {
        const auto& victim = std::get<Acquire>(holders[static_cast<std::size_t>(i)]);
        granted(breaking(victim));
        lost.wait(i);
        EXPECT_EQ(lost, i + 1);
    }
}

}  // namespace holdfast::tests
