// The next in line is told the lock with its turn, and takes it without looking. Whatever it was told, nobody gets a
// lock by it that is not free.
#include "stores/redis_fixture.hpp"

#include <future>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class RedisTurn : public testing::Test {
protected:
    void SetUp() override {
        must(other_->apply_one(alice_, soon()));
        EXPECT_THAT(store_->apply_one(bob_, soon()), RefusedWith(Errc::lock_conflict));
    }

    /// Bob waits until `announce` wakes him.
    template <class Announce>
    void wait_for(Announce announce) {
        const Watch watch{.name = lock("x"), .seen_seq = 1, .ticket = bob_.as.lock_id};
        auto woken = std::async(std::launch::async, [&] { return store_->wait_for_change(watch, soon()); });
        const Deadline patience = soon();
        while (server_.list({"PUBSUB", "CHANNELS"}).empty() && !patience.passed(host_clock()))
            std::this_thread::yield();
        announce();
        EXPECT_THAT(woken.get(), Granted());
    }
    void wait_for_turn() {
        wait_for([&] { must(other_->apply_one(release(alice_), soon())); });
    }
    int trips_of_bob(const std::function<void(const Reply&)>& check) {
        const int before = calls(server_, "evalsha");
        check(store_->apply_one(bob_, soon()));
        return calls(server_, "evalsha") - before;
    }

    OwnRedis redis_;
    std::unique_ptr<Store> store_ = must(redis_.open());
    std::unique_ptr<Store> other_ = must(redis_.open());  ///< As of another process.
    RedisByHand server_ = redis_.by_hand();
    const Acquire alice_ = by_alice(lock("x"), 1h);
    const Acquire bob_ = queued(by_bob(lock("x"), 1h), 1h);
};

TEST_F(RedisTurn, WhoseTurnHasComeTakesTheLockInOneTrip) {
    EXPECT_FALSE(other_->apply_one(queued(by_carol(lock("x")), 1h), soon()));
    wait_for_turn();
    EXPECT_EQ(trips_of_bob([](const Reply& reply) {
                  ASSERT_THAT(reply, Granted());
                  EXPECT_EQ(reply->lock.waiters, 1U);
              }),
              1);
    EXPECT_EQ(must(other_->inspect(lock("x"), soon())).lease->lock_id, bob_.as.lock_id);
    EXPECT_EQ(must(other_->inspect(lock("x"), soon())).waiters, 1U);
    expect_sound(*other_, lock("x"));
}

TEST_F(RedisTurn, WhatHasChangedSinceIsSeen) {
    wait_for_turn();
    EXPECT_FALSE(other_->apply_one(queued(by_carol(lock("x")), 1h), soon()));
    EXPECT_EQ(trips_of_bob([](const Reply& reply) {
                  ASSERT_THAT(reply, Granted());
                  EXPECT_EQ(reply->lock.waiters, 1U);
              }),
              2);
    expect_sound(*other_, lock("x"));
}

TEST_F(RedisTurn, ALockThatSomebodyTookMeanwhileIsNotTakenTwice) {
    wait_for_turn();
    must(other_->apply_one(Cancel{lock("x"), bob_.as}, soon()));
    must(other_->apply_one(by_carol(lock("x"), 1h), soon()));
    EXPECT_THAT(store_->apply_one(bob_, soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(must(other_->inspect(lock("x"), soon())).lease->holder.text, "carol");
    expect_sound(*other_, lock("x"));
}

TEST_F(RedisTurn, WhoGivesUpAtItsTurnLetsTheNextOneKnow) {
    const Acquire carol = queued(by_carol(lock("x")), 1h);
    EXPECT_FALSE(other_->apply_one(carol, soon()));
    wait_for_turn();
    RedisByHand listener = redis_.by_hand();
    listener.list({"SUBSCRIBE", "{holdfast}:turn:" + carol.as.lock_id.text()});
    must(store_->apply_one(Cancel{lock("x"), bob_.as}, soon()));
    EXPECT_EQ(listener.list({"PING"}).front(), "message");
}

TEST_F(RedisTurn, WhatIsAnnouncedByAnybodyElseGivesNobodyALock) {
    for (const char* text : {"", "0", "1 1 1", "1 1 0 ", "1 1 99999999999999999999 x",
                             "1 1 18446744073709551615 xxxxxxxx", "1 1 3 abcdefghijklmnop", "-1 1 1 x", "\xff\xfe"}) {
        wait_for([&] { server_.ask({"PUBLISH", "{holdfast}:turn:" + bob_.as.lock_id.text(), text}); });
        EXPECT_THAT(store_->apply_one(bob_, soon()), RefusedWith(Errc::lock_conflict)) << text;
    }
    EXPECT_EQ(must(other_->inspect(lock("x"), soon())).lease->lock_id, alice_.as.lock_id);
}

}  // namespace
}  // namespace holdfast::tests
