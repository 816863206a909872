// Goal: all waiters of a Store object listen on one connection, each is woken by what concerns its own turn, and a lost
// connection or a missing right costs nobody its turn. Method: servers of the test's own, on which announcements are
// published and connections are killed by hand.
#include "stores/redis_fixture.hpp"
#include "support/watched_lock.hpp"

#include <algorithm>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class RedisWaiting : public testing::Test {
protected:
    /// The watch of a waiter behind a holder that stays.
    [[nodiscard]] Watch stand_in_line(const std::string& name) {
        must(store_->apply_one(by_alice(lock(name), 1h), soon()));
        const Acquire bob = queued(by_bob(lock(name)), 1h);
        EXPECT_THAT(store_->apply_one(bob, soon()), RefusedWith(Errc::lock_conflict));
        return {.name = lock(name), .seen_seq = 1, .ticket = bob.as.lock_id};
    }
    [[nodiscard]] std::unique_ptr<WatchedLock> watched(const Watch& watch) {
        return std::make_unique<WatchedLock>(*store_, watch);
    }
    [[nodiscard]] static std::string channel_of(const Watch& watch) {
        return "{holdfast}:turn:" + watch.ticket->text();
    }
    /// True as soon as the server has so many channels that somebody listens to.
    [[nodiscard]] bool has_channels(std::size_t count) {
        const Deadline patience = soon();
        while (server_.list({"PUBSUB", "CHANNELS"}).size() != count)
            if (patience.passed(host_clock())) return false;
        return true;
    }
    [[nodiscard]] std::size_t listening_connections() {
        const std::string clients = server_.ask({"CLIENT", "LIST", "TYPE", "pubsub"});
        return static_cast<std::size_t>(std::ranges::count(clients, '\n'));
    }

    const OwnRedis redis_;
    const std::unique_ptr<Store> store_ = must(redis_.open());
    RedisByHand server_ = redis_.by_hand();
};

TEST_F(RedisWaiting, TheNextInLineIsToldOfItsTurnAndWokenByThatAlone) {
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store_->apply_one(alice, soon()));
    const Acquire bob = queued(by_bob(lock("x")), 1h);
    EXPECT_FALSE(store_->apply_one(bob, soon()));
    const Watch watch{.name = lock("x"), .seen_seq = 1, .ticket = bob.as.lock_id};
    const auto told = watched(watch);
    ASSERT_TRUE(has_channels(1));

    // The lock is held for an hour: a look alone would show no reason to wake.
    server_.ask({"PUBLISH", channel_of(watch), ""});
    ASSERT_TRUE(told->fires());
    EXPECT_THAT(told->result(), Granted());

    RedisByHand listener = redis_.by_hand();
    listener.list({"SUBSCRIBE", channel_of(watch)});
    must(store_->apply_one(release(alice), soon()));
    // What was announced stands before the answer.
    EXPECT_EQ(listener.list({"PING"}).front(), "message");
}

// If each announcement woke all of them, a thousand waiters would cost a thousand times as much.
TEST_F(RedisWaiting, AnAnnouncementWakesOnlyTheWatchThatItConcerns) {
    std::vector<std::unique_ptr<WatchedLock>> others;
    for (int i = 0; i < 8; ++i) others.push_back(watched(stand_in_line("other " + std::to_string(i))));
    const Watch watch = stand_in_line("x");
    for (int round = 0; round < 20; ++round) {
        // Not that of the round before, which would take the announcement with it.
        ASSERT_TRUE(has_channels(8));
        const auto told = watched(watch);
        ASSERT_TRUE(has_channels(9));
        server_.ask({"PUBLISH", channel_of(watch), ""});
        ASSERT_TRUE(told->fires());
    }
    for (const auto& other : others) EXPECT_FALSE(other->has_fired());
}

TEST_F(RedisWaiting, ManyWatchesShareOneConnectionAndTheLastOneLeavesNothingSubscribed) {
    std::vector<std::unique_ptr<WatchedLock>> watches;
    for (int i = 0; i < 300; ++i) watches.push_back(watched({.name = lock("lock " + std::to_string(i))}));
    // Two that watch one lock listen to one channel.
    watches.push_back(watched({.name = lock("lock 0")}));
    ASSERT_TRUE(has_channels(300));
    EXPECT_EQ(listening_connections(), 1U);
    watches.erase(watches.begin());
    watches.erase(watches.begin(), watches.begin() + 99);
    EXPECT_TRUE(has_channels(201)) << "the first one has another listener";
    watches.clear();
    EXPECT_TRUE(has_channels(0));
}

TEST_F(RedisWaiting, ALostConnectionIsReplacedForAllWatches) {
    const Watch first = stand_in_line("x");
    const Watch second = stand_in_line("y");
    const auto told_first = watched(first);
    const auto told_second = watched(second);
    ASSERT_TRUE(has_channels(2));
    server_.ask({"CLIENT", "KILL", "TYPE", "pubsub"});
    ASSERT_TRUE(has_channels(2));
    for (const Watch* watch : {&first, &second}) server_.ask({"PUBLISH", channel_of(*watch), ""});
    EXPECT_TRUE(told_first->fires());
    EXPECT_TRUE(told_second->fires());
}

TEST_F(RedisWaiting, ALookThatFailsEndsTheWatchWithItsError) {
    const Watch watch = stand_in_line("x");
    const auto told = watched(watch);
    ASSERT_TRUE(has_channels(1));
    server_.ask({"FLUSHALL"});
    server_.ask({"PUBLISH", channel_of(watch), ""});
    ASSERT_TRUE(told->fires());
    EXPECT_THAT(told->result(), RefusedWith(Errc::store_unavailable));
}

TEST(RedisWithoutPubSub, AWaiterFindsItsTurnByLooking) {
    const OwnRedis redis({"--rename-command", "SUBSCRIBE", ""});
    const auto store = must(redis.open());
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    const Acquire bob = queued(by_bob(lock("x")), 1h);
    EXPECT_THAT(store->apply_one(bob, soon()), RefusedWith(Errc::lock_conflict));
    WatchedLock watch(*store, {.name = lock("x"), .seen_seq = 1, .ticket = bob.as.lock_id});
    must(store->apply_one(release(alice), soon()));
    ASSERT_TRUE(watch.fires());
    EXPECT_TRUE(must(watch.result())) << "it was handed the lock";
}

}  // namespace
}  // namespace holdfast::tests
