// Goal: what only etcd can get wrong between reading and writing, and what an operator can do to its keys.
// Method: many clients at once, large batches, and etcd's own API behind the store's back.

#include "holdfast/open.hpp"
#include "support/etcd_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

Deadline patient() { return Deadline::in(host_clock(), 30s); }

class EtcdKeys : public testing::Test {
protected:
    ~EtcdKeys() override { by_hand_.remove_all(prefix_ + "/"); }

    [[nodiscard]] std::string url() const { return fmt::format("etcd://127.0.0.1:{}/{}", port_, prefix_); }
    [[nodiscard]] std::unique_ptr<Store> open() const { return must(open_store(url())); }
    [[nodiscard]] std::string record_of(std::string_view name) const { return fmt::format("{}/l/{}", prefix_, name); }

    const std::uint16_t port_ = shared_server_port("etcd");
    const EtcdByHand by_hand_{port_};
    const std::string prefix_ = "keys-" + LockId::random().text();
};

TEST_F(EtcdKeys, LooksDoNotCreateAnything) {
    const auto store = open();
    must(store->inspect(lock("x"), patient()));
    must(store->list({}, patient()));
    must(store->history({}, patient()));
    EXPECT_THAT(by_hand_.keys(prefix_), testing::IsEmpty());
    EXPECT_FALSE(store->info().store_id);
}

TEST_F(EtcdKeys, ARecordThatSomebodyRemovedIsNotAFreeLock) {
    const auto store = open();
    must(store->apply_one(by_alice(lock("x")), patient()));
    by_hand_.remove_all(record_of("x"));
    EXPECT_THAT(store->apply_one(by_bob(lock("x")), patient()), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(store->inspect(lock("x"), patient()), RefusedWith(Errc::record_corrupt));
    Acquire excluded = by_bob(lock("y"));
    excluded.unless_held = {lock("x")};
    EXPECT_THAT(store->apply_one(excluded, patient()), RefusedWith(Errc::record_corrupt));
    EXPECT_THAT(store->apply_one(by_bob(lock("x/1")), patient()), Granted()) << "another lock, with a similar name";
}

TEST_F(EtcdKeys, AStoreThatIsGoneIsNotMadeAgainByItsUsers) {
    const auto store = open();
    must(store->apply_one(by_alice(lock("x")), patient()));
    by_hand_.remove_all(prefix_ + "/");
    EXPECT_THAT(store->apply_one(by_bob(lock("x")), patient()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->inspect(lock("x"), patient()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(by_hand_.keys(prefix_ + "/"), testing::IsEmpty());
    EXPECT_THAT(open()->apply_one(by_bob(lock("x")), patient()), Granted()) << "somebody new begins anew";
}

TEST_F(EtcdKeys, LocksWithoutTheKeyThatSaysWhatTheyAreAreNotTakenOver) {
    must(open()->apply_one(by_alice(lock("x")), patient()));
    by_hand_.remove_all(prefix_ + "/meta");
    EXPECT_THAT(open()->apply_one(by_bob(lock("x")), patient()), RefusedWith(Errc::record_corrupt));
}

TEST_F(EtcdKeys, AForeignOrNewerFormatIsRefused) {
    for (const char* meta : {"holdfast 3 whatever", "something else", "holdfast 1 not-an-id", ""}) {
        by_hand_.put(prefix_ + "/meta", meta);
        EXPECT_THAT(open_store(url()), RefusedWith(Errc::format_unsupported)) << meta;
    }
}

TEST_F(EtcdKeys, ABatchMayBeLargerThanATransaction) {
    const auto store = open();
    std::vector<Request> requests;
    for (int i = 0; i < 300; ++i) requests.push_back(by_alice(lock(fmt::format("lock {:03}", i))));
    const auto replies = must(store->apply(requests, patient()));
    EXPECT_THAT(replies, testing::Each(Granted()));
    EXPECT_EQ(must(store->list({}, patient())).size(), requests.size());

    // Many on one lock, and one that looks at many.
    std::vector<Request> waiting;
    for (int i = 0; i < 150; ++i) waiting.push_back(queued(by_bob(lock("lock 000"))));
    for (const Reply& reply : must(store->apply(waiting, patient())))
        EXPECT_THAT(reply, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(must(store->inspect(lock("lock 000"), patient())).waiters, waiting.size());
    std::vector<Request> excluded;
    for (int i = 0; i < 20; ++i) {
        Acquire one = by_bob(lock(fmt::format("new {}", i)));
        for (int j = 0; j < 16; ++j) one.unless_held.push_back(lock(fmt::format("free {} {}", i, j)));
        excluded.emplace_back(one);
    }
    EXPECT_THAT(must(store->apply(excluded, patient())), testing::Each(Granted()));
}

// HTTP/2 sends no more than 64 KiB before the node has said that it may.
TEST_F(EtcdKeys, ATransactionMayBeLargerThanWhatANodeTakesAtOnce) {
    const auto store = open();
    std::vector<Request> requests;
    for (int i = 0; i < 60; ++i) {
        Acquire one = by_alice(lock(fmt::format("lock {:02}", i)));
        one.reason = std::string(1000, 'x');
        requests.emplace_back(one);
    }
    EXPECT_THAT(must(store->apply(requests, patient())), testing::Each(Granted()));
    EXPECT_EQ(must(store->history({}, patient())).size(), requests.size());
}

TEST_F(EtcdKeys, WaitersGetTheirTurnsInTheOrderOfTheirArrivalWhereverTheyStand) {
    const auto store = open();
    Acquire holder = by_alice(lock("x"), 1h);
    must(store->apply_one(holder, patient()));
    std::vector<Acquire> line;
    for (int i = 0; i < 40; ++i) {
        line.push_back(queued(by("waiter", lock("x"), 1h), 1h));
        EXPECT_FALSE(store->apply_one(line.back(), patient()));
    }
    // Prolonging a place far behind keeps it.
    for (const Acquire& waiter : line) EXPECT_FALSE(store->apply_one(waiter, patient()));
    EXPECT_EQ(must(store->inspect(lock("x"), patient())).waiters, line.size());
    must(store->apply_one(cancel(line[30]), patient()));
    line.erase(line.begin() + 30);
    for (const Acquire& next : line) {
        must(store->apply_one(release(holder), patient()));
        EXPECT_THAT(store->apply_one(line.back(), patient()),
                    &next == &line.back() ? testing::Matcher<const Reply&>(Granted())
                                          : testing::Matcher<const Reply&>(RefusedWith(Errc::lock_conflict)));
        if (&next != &line.back()) must(store->apply_one(next, patient()));
        holder = next;
    }
    must(store->apply_one(release(holder), patient()));
    EXPECT_THAT(by_hand_.keys(prefix_ + "/q/"), testing::IsEmpty());
    EXPECT_THAT(by_hand_.keys(prefix_ + "/t/"), testing::IsEmpty()) << "nothing is left of those who waited";
}

// A store remembers how it left a lock, and then writes without reading first.
TEST_F(EtcdKeys, ACachedQueueDoesNotLetACallerPassNewWaiters) {
    const auto mine = open();
    const auto theirs = open();
    const Acquire alice = by_alice(lock("x"));
    must(mine->apply_one(alice, patient()));
    const Acquire bob = queued(by_bob(lock("x")));
    EXPECT_THAT(theirs->apply_one(bob, patient()), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(must(mine->apply_one(release(alice), patient())).lock.lease->lock_id, bob.as.lock_id);
    EXPECT_THAT(mine->apply_one(by_alice(lock("x")), patient()), RefusedWith(Errc::lock_conflict)) << "bob was first";
    must(theirs->apply_one(bob, patient()));
    EXPECT_THAT(mine->apply_one(by_alice(lock("x")), patient()), RefusedWith(Errc::lock_conflict));
    must(theirs->apply_one(release(bob), patient()));

    const Acquire carol = by_carol(lock("x"));
    must(mine->apply_one(carol, patient()));
    must(mine->apply_one(release(carol), patient()));
    const Acquire dave = by("dave", lock("x"), 1h);
    must(theirs->apply_one(dave, patient()));
    EXPECT_THAT(mine->apply_one(by_alice(lock("x")), patient()), RefusedWith(Errc::lock_conflict)) << "dave was faster";
    must(theirs->apply_one(release(dave), patient()));
    EXPECT_THAT(
        verify_chain(must(mine->history({.name = lock("x")}, patient())), must(mine->inspect(lock("x"), patient()))),
        Granted());
}

// After several new locks a client takes the next one without reading first.
TEST_F(EtcdKeys, ALockThatIsPredictedToBeNewIsNotTakenFromItsHolder) {
    const auto mine = open();
    const auto theirs = open();
    int count = 0;
    const auto meet_new_ones = [&] {
        for (int i = 0; i < 10; ++i) must(mine->apply_one(by_alice(lock(fmt::format("new {}", count++))), patient()));
    };
    const Acquire held = by_bob(lock("held"), 1h);
    must(theirs->apply_one(held, patient()));
    meet_new_ones();
    EXPECT_THAT(mine->apply_one(by_alice(held.name), patient()), RefusedWith(Errc::lock_conflict));

    const auto token = must(theirs->apply_one(release(held), patient())).lock.token;
    meet_new_ones();
    EXPECT_GT(must(mine->apply_one(by_alice(held.name), patient())).lock.token.value, token.value);

    must(theirs->apply_one(by_bob(lock("damaged"), 1h), patient()));
    by_hand_.remove_all(record_of("damaged"));
    meet_new_ones();
    EXPECT_THAT(mine->apply_one(by_alice(lock("damaged")), patient()), RefusedWith(Errc::record_corrupt));

    // Nobody ever held it, and somebody waits.
    Acquire first = queued(by_bob(lock("awaited")), 1h);
    first.unless_held = {held.name};
    EXPECT_THAT(theirs->apply_one(first, patient()), RefusedWith(Errc::lock_conflict));
    meet_new_ones();
    EXPECT_THAT(mine->apply_one(by_alice(first.name), patient()), RefusedWith(Errc::lock_conflict));

    // One of several is enough.
    meet_new_ones();
    const std::vector<Request> several{by_alice(lock("one")), by_alice(first.name), by_alice(lock("two"))};
    const auto replies = must(mine->apply(several, patient()));
    EXPECT_THAT(replies[0], Granted());
    EXPECT_THAT(replies[1], RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(replies[2], Granted());
}

// Each reads that the other is free. If the other's record were not compared when writing, both would be granted.
TEST_F(EtcdKeys, TwoLocksThatExcludeEachOtherAreNeverBothHeld) {
    const auto one = open();
    const auto two = open();
    int granted = 0;
    for (int round = 0; round < scaled(200) && !HasFailure(); ++round) {
        Acquire left = by_alice(lock(fmt::format("left {}", round)));
        Acquire right = by_bob(lock(fmt::format("right {}", round)));
        left.unless_held = {right.name};
        right.unless_held = {left.name};
        auto other = std::async(std::launch::async, [&] { return two->apply_one(right, patient()); });
        const Reply mine = one->apply_one(left, patient());
        const Reply theirs = other.get();
        EXPECT_NE(mine.has_value(), theirs.has_value()) << "one of them, and not both";
        granted += mine ? 1 : 0;
    }
    RecordProperty("left", granted);
}

// Revisions are forgotten while waiters begin to watch from one of them.
TEST_F(EtcdKeys, AWaiterIsWokenAlthoughEtcdForgetsWhatItWatches) {
    const auto server = start_etcd_server();
    const EtcdByHand by_hand(server->port());
    const auto store = must(open_store(fmt::format("etcd://127.0.0.1:{}/x", server->port())));
    std::jthread forgetting([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            by_hand.put("other", "value");
            by_hand.put("other", "value");
            by_hand.compact();
        }
    });
    for (int round = 0; round < scaled(100) && !HasFailure(); ++round) {
        const Acquire alice = by_alice(lock(fmt::format("{}", round)));
        const std::uint64_t seen = must(store->apply_one(alice, patient())).lock.seq;
        auto woken = std::async(std::launch::async, [&] {
            return store->wait_for_change({.name = alice.name, .seen_seq = seen}, patient());
        });
        std::this_thread::sleep_for(std::chrono::milliseconds{round % 10});
        must(store->apply_one(release(alice), patient()));
        EXPECT_EQ(woken.wait_for(5s), std::future_status::ready) << "round " << round;
    }
}

// Stopped at various moments: before it looks, while it looks, while it listens.
TEST_F(EtcdKeys, AWaitThatIsStoppedEndsLongBeforeItsDeadline) {
    const auto store = open();
    const std::uint64_t seen = must(store->apply_one(by_alice(lock("x")), patient())).lock.seq;
    const Deadline late = Deadline::in(host_clock(), 1h);
    for (int round = 0; round < 20; ++round) {
        std::stop_source stop;
        auto waiting = std::async(std::launch::async, [&] {
            return store->wait_for_change({.name = lock("x"), .seen_seq = seen, .stop = stop.get_token()}, late);
        });
        std::this_thread::sleep_for(std::chrono::milliseconds{round * 5});
        stop.request_stop();
        ASSERT_EQ(waiting.wait_for(60s), std::future_status::ready);
        must(waiting.get());
    }
}

}  // namespace
}  // namespace holdfast::tests
