// Goal: a waiter is woken by etcd itself, and by time where no event announces its turn: a holder and a waiter that
// died change no key. Method: real time on a real node, without a margin.

#include "holdfast/open.hpp"
#include "stores/etcd/wait_target.hpp"
#include "support/etcd_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/servers/kinds.hpp"
#include "support/servers/proxy.hpp"
#include "support/watched_lock.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <future>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

Deadline patient() { return Deadline::in(host_clock(), 30s); }

class EtcdWaiting : public testing::Test {
protected:
    ~EtcdWaiting() override { by_hand_.remove_all(prefix_ + "/"); }

    /// Waits as `waiter` until its turn may have come. False if that did not happen before a store looks anyway.
    [[nodiscard]] bool gets_its_turn(const Acquire& waiter) const {
        const Deadline until = Deadline::in(host_clock(), 9s);
        must(store_->wait_for_change({.name = waiter.name, .ticket = waiter.as.lock_id}, until));
        return !until.passed(host_clock());
    }

    const std::uint16_t port_ = shared_server_port("etcd");
    const EtcdByHand by_hand_{port_};
    const std::string prefix_ = "waiting-" + LockId::random().text();
    const std::string url_ = fmt::format("etcd://127.0.0.1:{}/{}?clock_margin=0s", port_, prefix_);
    const std::unique_ptr<Store> store_ = must(open_store(url_));
};

// If many watched one key, all of them would run to the lock when it is removed.
TEST_F(EtcdWaiting, EveryWaiterWatchesTheOneBeforeItHoweverLongTheLineIs) {
    must(store_->apply_one(by_alice(lock("x"), 1h), patient()));
    std::vector<Acquire> line;
    for (int i = 0; i < 40; ++i) {
        // Other things happen meanwhile, so that places lie far apart, too.
        for (int other = 0; i % 20 == 19 && other < 100; ++other) by_hand_.put(prefix_ + "/other", "");
        line.push_back(queued(by("waiter", lock("x"), 1h), 1h));
        EXPECT_THAT(store_->apply_one(line.back(), patient()), RefusedWith(Errc::lock_conflict));
    }
    const auto places = by_hand_.keys(prefix_ + "/q/");
    ASSERT_EQ(places.size(), line.size());
    stores::etcd::Remote remote(must(stores::etcd::Address::of(must(base::Url::parse(url_)))), host_clock());
    std::vector<Watch> watches;
    for (const Acquire& waiter : line) watches.push_back({.name = lock("x"), .ticket = waiter.as.lock_id});
    const auto expect_target = [&](const stores::etcd::WaitTarget& target, std::size_t i) {
        EXPECT_FALSE(target.is_due) << i;
        EXPECT_EQ(target.watched.key, i == 0 ? prefix_ + "/l/x" : places[i - 1]) << i;
        EXPECT_EQ(target.watched.only_deletes, i > 0) << i << ": to keep a place is no news";
    };
    // All at once, and each by itself.
    base::CallBudget budget(host_clock(), patient());
    const auto targets = stores::etcd::read_wait_targets(remote, watches, budget);
    for (std::size_t i = 0; i < line.size(); ++i) {
        expect_target(must(targets[i]), i);
        expect_target(must(stores::etcd::read_wait_targets(remote, {&watches[i], 1}, budget).front()), i);
    }
}

// More than fit into one transaction.
TEST_F(EtcdWaiting, AnyNumberOfWatchesIsLookedAtTogether) {
    std::vector<Request> acquires;
    std::vector<Watch> watches;
    for (int i = 0; i < 150; ++i) {
        const LockName name = lock("lock " + std::to_string(i % 100));
        if (i < 90) acquires.emplace_back(by_alice(name, 1h));
        watches.push_back({.name = name});
    }
    EXPECT_THAT(must(store_->apply(acquires, patient())), testing::Each(Granted()));
    stores::etcd::Remote remote(must(stores::etcd::Address::of(must(base::Url::parse(url_)))), host_clock());
    base::CallBudget budget(host_clock(), patient());
    const auto targets = stores::etcd::read_wait_targets(remote, watches, budget);
    ASSERT_EQ(targets.size(), watches.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
        EXPECT_EQ(must(targets[i]).watched.key, prefix_ + "/l/" + watches[i].name.text());
        EXPECT_EQ(must(targets[i]).seq, i % 100 < 90 ? 1U : 0U) << i;
    }
}

// A record that is written again unchanged: a waiter that only compares it would not wake.
TEST_F(EtcdWaiting, AWaitIsEndedByWhatEtcdSaysAlone) {
    const std::uint64_t seen = must(store_->apply_one(by_alice(lock("x"), 1h), patient())).lock.seq;
    const std::string key = prefix_ + "/l/x";
    const std::string record = by_hand_.get(key).value();
    std::stop_source enough;
    const Watch watch{.name = lock("x"), .seen_seq = seen, .stop = enough.get_token()};
    auto woken = std::async(std::launch::async, [&] { return store_->wait_for_change(watch, Deadline::never()); });
    auto state = std::future_status::timeout;
    // Whether it listens already cannot be seen from here.
    for (const Deadline until = patient(); state != std::future_status::ready && !until.passed(host_clock());) {
        by_hand_.put(key, record);
        state = woken.wait_for(100ms);
    }
    EXPECT_EQ(state, std::future_status::ready);
    enough.request_stop();
    EXPECT_THAT(woken.get(), Granted());
}

// A holder that dies takes its lease with it, and tells nobody.
TEST_F(EtcdWaiting, TheFirstInLineComesToItsTurnWhenTheLeaseEnds) {
    must(store_->apply_one(by_alice(lock("x"), 1s), patient()));
    const Acquire bob = queued(by_bob(lock("x")), 1h);
    EXPECT_THAT(store_->apply_one(bob, patient()), RefusedWith(Errc::lock_conflict));
    EXPECT_TRUE(gets_its_turn(bob));
    EXPECT_THAT(store_->apply_one(bob, patient()), Granted());
}

/// Several watches, and what the server has of them.
class EtcdWatches : public testing::Test {
protected:
    /// Writes the record of the lock as it was, so that nothing but a watch shows it, until `watch` has fired.
    [[nodiscard]] bool fires_by_what_etcd_says(const WatchedLock& watch, const std::string& name) {
        const std::string key = "locks/l/" + name;
        const std::string record = by_hand_.get(key).value();
        const Deadline until = patient();
        // Whether it listens already cannot be seen from here.
        while (!watch.has_fired() && !until.passed(host_clock())) by_hand_.put(key, record);
        return watch.has_fired();
    }
    [[nodiscard]] std::unique_ptr<WatchedLock> watched(const std::string& name) {
        return std::make_unique<WatchedLock>(*store_, Watch{.name = lock(name), .seen_seq = 1});
    }
    [[nodiscard]] std::unique_ptr<WatchedLock> held_and_watched(const std::string& name) {
        must(store_->apply_one(by_alice(lock(name), 1h), patient()));
        return watched(name);
    }
    /// True as soon as the server has so many.
    [[nodiscard]] bool server_has(std::string_view metric, int count) const {
        const Deadline until = patient();
        const std::string line = fmt::format("\n{} {}\n", metric, count);
        while (by_hand_.call("/metrics", "").find(line) == std::string::npos)
            if (until.passed(host_clock())) return false;
        return true;
    }

    const std::unique_ptr<Server> server_ = start_etcd_server();
    Proxy proxy_{server_->port()};
    const EtcdByHand by_hand_{server_->port()};
    const std::unique_ptr<Store> store_ =
        must(open_store(fmt::format("etcd://127.0.0.1:{}/locks?clock_margin=0s", proxy_.port())));
};

TEST_F(EtcdWatches, ShareOneStreamAndTheLastOneEndsIt) {
    std::vector<std::unique_ptr<WatchedLock>> watches;
    for (int i = 0; i < 100; ++i) watches.push_back(held_and_watched("lock " + std::to_string(i)));
    // Two that watch one key are one watch for the server.
    watches.push_back(watched("lock 0"));
    EXPECT_TRUE(server_has("etcd_debugging_mvcc_watcher_total", 100));
    EXPECT_TRUE(server_has("etcd_debugging_mvcc_watch_stream_total", 1));
    watches.erase(watches.begin(), watches.begin() + 40);
    EXPECT_TRUE(server_has("etcd_debugging_mvcc_watcher_total", 61)) << "the first one has another listener";
    watches.clear();
    EXPECT_TRUE(server_has("etcd_debugging_mvcc_watcher_total", 0));
    EXPECT_TRUE(server_has("etcd_debugging_mvcc_watch_stream_total", 0));
}

TEST_F(EtcdWatches, AreAllMadeAnewAfterALostConnection) {
    const auto first = held_and_watched("x");
    const auto second = held_and_watched("y");
    ASSERT_TRUE(server_has("etcd_debugging_mvcc_watcher_total", 2));
    proxy_.cut();
    EXPECT_TRUE(fires_by_what_etcd_says(*first, "x"));
    EXPECT_TRUE(fires_by_what_etcd_says(*second, "y"));
}

TEST_F(EtcdWatches, FireWithTheErrorOfALookThatFails) {
    const auto watch = held_and_watched("x");
    ASSERT_TRUE(server_has("etcd_debugging_mvcc_watcher_total", 1));
    by_hand_.remove_all("locks/meta");
    const auto other = watched("x");
    ASSERT_TRUE(other->fires());
    EXPECT_THAT(other->result(), RefusedWith(Errc::store_unavailable));
    EXPECT_FALSE(watch->has_fired()) << "it was not looked at";
}

/// A waiter that got the lock remembers the next one, and does not read again before its release.
class EtcdSuccession : public EtcdWaiting {
protected:
    EtcdSuccession() {
        must(theirs_->apply_one(alice_, patient()));
        EXPECT_THAT(store_->apply_one(bob_, patient()), RefusedWith(Errc::lock_conflict));
        EXPECT_THAT(theirs_->apply_one(carol_, patient()), RefusedWith(Errc::lock_conflict));
        must(theirs_->apply_one(release(alice_), patient()));
        EXPECT_TRUE(must(store_->wait_for_change({.name = lock("x"), .ticket = bob_.as.lock_id}, patient())));
    }

    [[nodiscard]] LockStatus after_release() {
        must(store_->apply_one(release(bob_), patient()));
        return must(theirs_->inspect(lock("x"), patient()));
    }

    const std::unique_ptr<Store> theirs_ = must(open_store(url_));
    const Acquire alice_ = by_alice(lock("x"), 1h);
    const Acquire bob_ = queued(by_bob(lock("x")), 1h);
    const Acquire carol_ = queued(by_carol(lock("x")), 1h);
};

TEST_F(EtcdSuccession, TheNextWaiterIsHandedTheLock) {
    const LockStatus status = after_release();
    ASSERT_EQ(status.state, LockState::held);
    EXPECT_EQ(status.lease->lock_id, carol_.as.lock_id);
    EXPECT_EQ(status.waiters, 0U);
}

TEST_F(EtcdSuccession, AWaiterThatHasLeftIsNotHandedTheLock) {
    must(theirs_->apply_one(cancel(carol_), patient()));
    EXPECT_EQ(after_release().state, LockState::free);
}

TEST_F(EtcdSuccession, AWaiterThatKeptItsPlaceMeanwhileIsHandedTheLock) {
    EXPECT_THAT(theirs_->apply_one(carol_, patient()), RefusedWith(Errc::lock_conflict));
    const LockStatus status = after_release();
    ASSERT_EQ(status.state, LockState::held);
    EXPECT_EQ(status.lease->lock_id, carol_.as.lock_id);
}

// Its place stays where it is until somebody sweeps it out: no key changes when it runs out.
TEST_F(EtcdWaiting, AWaiterBehindADeadOneGetsItsTurnWhenThatPlaceEnds) {
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store_->apply_one(alice, patient()));
    // A lock is not handed on to a waiter that depends on another lock, so this one is free and the place is what
    // counts.
    Acquire bob = queued(by_bob(lock("x")), 1s);
    bob.unless_held = {lock("y")};
    EXPECT_THAT(store_->apply_one(bob, patient()), RefusedWith(Errc::lock_conflict));
    const Acquire carol = queued(by_carol(lock("x")), 1h);
    EXPECT_THAT(store_->apply_one(carol, patient()), RefusedWith(Errc::lock_conflict));
    must(store_->apply_one(release(alice), patient()));
    EXPECT_TRUE(gets_its_turn(carol));
    EXPECT_THAT(store_->apply_one(carol, patient()), Granted());
}

}  // namespace
}  // namespace holdfast::tests
