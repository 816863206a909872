// Goal: who waits is woken by etcd itself, and by the mere passing of time where nobody says anything any more: a
// holder and a waiter that died change no key. Method: real time on a real node, without a margin.

#include "holdfast/open.hpp"
#include "stores/etcd/read.hpp"
#include "support/etcd_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/servers/kinds.hpp"

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
    stores::etcd::Session session(must(stores::etcd::Address::of(must(base::Url::parse(url_)))), host_clock());
    for (std::size_t i = 0; i < line.size(); ++i) {
        stores::CallBudget budget(host_clock(), patient());
        const auto outlook =
            must(stores::etcd::look_out(session, {.name = lock("x"), .ticket = line[i].as.lock_id}, budget));
        EXPECT_FALSE(outlook.may_go_on) << i;
        EXPECT_EQ(outlook.watch_next, i == 0 ? prefix_ + "/l/x" : places[i - 1]) << i;
        EXPECT_EQ(outlook.only_deletes, i > 0) << i << ": to keep a place is no news";
    }
}

// A record that is written again as it was: who only looked would see no reason to wake.
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

/// Who was handed the lock remembers who comes next, and does not look again when it gives it back.
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

TEST_F(EtcdSuccession, WhoComesNextIsHandedTheLock) {
    const LockStatus status = after_release();
    ASSERT_EQ(status.state, LockState::held);
    EXPECT_EQ(status.lease->lock_id, carol_.as.lock_id);
    EXPECT_EQ(status.waiters, 0U);
}

TEST_F(EtcdSuccession, WhoHasLeftIsNotHandedTheLock) {
    must(theirs_->apply_one(cancel(carol_), patient()));
    EXPECT_EQ(after_release().state, LockState::free);
}

TEST_F(EtcdSuccession, WhoKeptItsPlaceMeanwhileIsHandedTheLock) {
    EXPECT_THAT(theirs_->apply_one(carol_, patient()), RefusedWith(Errc::lock_conflict));
    const LockStatus status = after_release();
    ASSERT_EQ(status.state, LockState::held);
    EXPECT_EQ(status.lease->lock_id, carol_.as.lock_id);
}

// Its place stays where it is until somebody sweeps it out: no key changes when it runs out.
TEST_F(EtcdWaiting, WhoStandsBehindAWaiterThatDiedComesToItsTurnWhenThatPlaceEnds) {
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store_->apply_one(alice, patient()));
    EXPECT_THAT(store_->apply_one(queued(by_bob(lock("x")), 1s), patient()), RefusedWith(Errc::lock_conflict));
    const Acquire carol = queued(by_carol(lock("x")), 1h);
    EXPECT_THAT(store_->apply_one(carol, patient()), RefusedWith(Errc::lock_conflict));
    must(store_->apply_one(release(alice), patient()));
    EXPECT_TRUE(gets_its_turn(carol));
    EXPECT_THAT(store_->apply_one(carol, patient()), Granted());
}

}  // namespace
}  // namespace holdfast::tests
