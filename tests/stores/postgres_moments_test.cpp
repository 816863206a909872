// Goal: what happens between two messages of one change costs nobody the lock and gives it to nobody twice. Method: a
// proxy holds a message up until something else was done, or the server ends a session in the middle of its COMMIT.
#include "stores/postgres_fixture.hpp"
#include "support/servers/proxy.hpp"

#include <future>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class PostgresMoments : public PostgresFixture {
protected:
    PostgresMoments() { must(direct_->apply({}, soon())); }

    const std::unique_ptr<Store> direct_ = open();
    Proxy proxy_{port_};
    const std::unique_ptr<Store> store_ = must(open_store(postgres_url(proxy_.port(), "schema=" + schema_)));
};

// What a store decides by what it remembers, it decides by what the server's clock must show when it arrives.
TEST_F(PostgresMoments, ARenewalThatArrivesAfterTheLeaseRanOutIsRefused) {
    const Acquire mine = by_alice(lock("x"), 300ms);
    must(store_->apply_one(mine, soon()));
    proxy_.become({.holds_requests = true});
    auto renewed = std::async(std::launch::async, [&] { return store_->apply_one(renewal(mine), soon()); });
    while (must(direct_->inspect(lock("x"), soon())).state != LockState::expired) std::this_thread::yield();
    proxy_.become({});
    EXPECT_THAT(renewed.get(), RefusedWith(Errc::lock_expired));
}

// Whoever keeps its place in the queue may be handed the lock in the same moment, and must not be left with both.
TEST_F(PostgresMoments, WhoIsHandedTheLockWhileItKeepsItsPlaceHasNoPlaceAnyMore) {
    const Acquire alice = by_alice(lock("x"), 1h);
    must(direct_->apply_one(alice, soon()));
    const Acquire bob = queued(by_bob(lock("x"), 1h), 5min);
    EXPECT_THAT(store_->apply_one(bob, soon()), RefusedWith(Errc::lock_conflict));
    // When the server has answered what the lock is, and before bob hears it.
    bool released = false;
    proxy_.arrange_when([&] {
        if (!std::exchange(released, true)) must(direct_->apply_one(release(alice), soon()));
        return false;
    });
    EXPECT_THAT(store_->apply_one(bob, soon()), Granted());
    ASSERT_TRUE(released);
    const LockStatus status = must(direct_->inspect(lock("x"), soon()));
    ASSERT_TRUE(status.lease);
    EXPECT_EQ(status.lease->lock_id, bob.as.lock_id);
    EXPECT_EQ(status.waiters, 0U) << "it would be handed the lock again when it gives it back";
    must(store_->apply_one(release(bob), soon()));
    EXPECT_EQ(must(direct_->inspect(lock("x"), soon())).state, LockState::free);
}

// A session that the server ends at COMMIT may have committed.
TEST_F(PostgresMoments, AChangeWhoseSessionIsEndedAtItsCommitIsUnknown) {
    by_hand_("CREATE FUNCTION " + schema_ +
             ".quit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); "
             "RETURN NULL; END $$");
    by_hand_("CREATE CONSTRAINT TRIGGER quits AFTER INSERT ON " + schema_ +
             ".audit DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " + schema_ + ".quit()");
    const Acquire mine = by_alice(lock("x"), 1h);
    EXPECT_THAT(direct_->apply_one(mine, soon()), RefusedWith(Errc::outcome_unknown));
    by_hand_("DROP FUNCTION " + schema_ + ".quit CASCADE");
    EXPECT_EQ(must(direct_->apply_one(mine, soon())).lock.seq, 1U);
}

// The advisory lock belongs to the lease, and not to everybody in this process who asked for the lock.
TEST_F(PostgresMoments, WhoIsRefusedInTheSameProcessTakesNoSessionFromTheHolder) {
    const auto ours = open("session=on");
    const auto others = open("session=on");
    const Acquire alice = by_alice(lock("x"), 1h);
    must(ours->apply_one(alice, soon()));
    for (int i = 0; i < 3; ++i) {
        EXPECT_THAT(ours->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::lock_conflict));
        EXPECT_THAT(others->apply_one(by_carol(lock("x")), soon()), RefusedWith(Errc::lock_conflict))
            << "the holder's session is there";
    }
    EXPECT_THAT(ours->apply_one(renewal(alice), soon()), Granted());
}

}  // namespace
}  // namespace holdfast::tests
