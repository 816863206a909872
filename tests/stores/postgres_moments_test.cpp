// Goal: what happens between two messages of one change costs nobody the lock and gives it to nobody twice. Method: a
// proxy holds a message up until something else was done, or the server ends a session in the middle of its COMMIT.
#include "stores/postgres_fixture.hpp"
#include "support/servers/proxy.hpp"

#include <future>
#include <thread>
#include <utility>

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
TEST_F(PostgresMoments, AWaiterThatIsHandedTheLockWhileItKeepsItsPlaceHasNoPlaceAnyMore) {
    const Acquire alice = by_alice(lock("x"), 1h);
    must(direct_->apply_one(alice, soon()));
    const Acquire bob = queued(by_bob(lock("x"), 1h), 5min);
    EXPECT_THAT(store_->apply_one(bob, soon()), RefusedWith(Errc::lock_conflict));
    // When the server has answered what the lock is, and before bob hears it: the release is done then, or waits.
    std::future<Reply> released;
    proxy_.arrange_when([&] {
        if (released.valid()) return false;
        released = std::async(std::launch::async, [&] { return direct_->apply_one(release(alice), soon()); });
        const std::string waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%" + schema_ + "%'";
        while (released.wait_for(0s) != std::future_status::ready && by_hand_(waiting) == "0")
            std::this_thread::yield();
        return false;
    });
    static_cast<void>(store_->apply_one(bob, soon()));
    ASSERT_TRUE(released.valid());
    must(released.get());
    EXPECT_THAT(store_->apply_one(bob, soon()), Granted());
    const LockStatus status = must(direct_->inspect(lock("x"), soon()));
    ASSERT_TRUE(status.lease);
    EXPECT_EQ(status.lease->lock_id, bob.as.lock_id);
    EXPECT_EQ(status.waiters, 0U) << "it would be handed the lock again when it gives it back";
    must(store_->apply_one(release(bob), soon()));
    EXPECT_EQ(must(direct_->inspect(lock("x"), soon())).state, LockState::free);
}

// Waiters do it again and again, as long as they wait.
TEST_F(PostgresMoments, AWaiterKeepsItsPlaceWithTwoRoundTrips) {
    must(direct_->apply_one(by_alice(lock("x"), 1h), soon()));
    const Acquire bob = queued(by_bob(lock("x"), 1h), 5min);
    for (int i = 0; i < 2; ++i) EXPECT_THAT(store_->apply_one(bob, soon()), RefusedWith(Errc::lock_conflict));
    const std::uint64_t before = proxy_.messages();
    EXPECT_THAT(store_->apply_one(bob, soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(proxy_.messages() - before, 2U);
    EXPECT_EQ(must(direct_->inspect(lock("x"), soon())).waiters, 1U);
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
// Which a server does to a transaction that something has spoilt.
TEST_F(PostgresMoments, AServerThatRollsBackAtTheCommitHasChangedNothing) {
    using namespace std::string_literals;
    // With the byte that ends it: READ COMMITTED stays.
    proxy_.misquote("COMMIT\0"s, "ABORT \0"s);
    const auto store = must(open_store(postgres_url(proxy_.port(), "schema=" + schema_)));
    const Acquire alice = by_alice(lock("x"));
    EXPECT_THAT(store->apply_one(alice, soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(must(direct_->inspect(lock("x"), soon())).state, LockState::free);
    proxy_.misquote("", "");
    proxy_.cut();
    EXPECT_THAT(store->apply_one(alice, soon()), Granted());
}

// Waiters that join at once have read the same last number, and may choose the same next one.
TEST_F(PostgresMoments, AWaiterWhosePlaceSomebodyElseTookTakesAnother) {
    must(direct_->apply_one(by_alice(lock("x"), 1h), soon()));
    EXPECT_THAT(store_->apply_one(by_carol(lock("x")), soon()), RefusedWith(Errc::lock_conflict));
    const auto before = proxy_.messages();
    const std::string queue = "\"" + schema_ + "\".queue";
    bool taken = false;
    bool given_back = false;
    proxy_.arrange_when([&] {
        // Every number that it can choose, while it chooses.
        if (proxy_.messages() == before + 1 && !std::exchange(taken, true))
            by_hand_("INSERT INTO " + queue +
                     " SELECT 'x', n, gen_random_uuid(), '', 0, 0, '' "
                     "FROM generate_series(1, 70000) AS n");
        if (proxy_.messages() > before + 1 && !std::exchange(given_back, true)) by_hand_("DELETE FROM " + queue);
        return false;
    });
    EXPECT_THAT(store_->apply_one(queued(by_bob(lock("x")), 5min), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_TRUE(given_back);
    EXPECT_EQ(must(direct_->inspect(lock("x"), soon())).waiters, 1U);
}

TEST_F(PostgresMoments, ARefusedCallInTheSameProcessTakesNoSessionFromTheHolder) {
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
