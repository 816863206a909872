// Goal: after a failover to a promoted standby leases, queue and audit log go on where the old primary ended if it
// waited for the standby; and where it did not, a token that was lost is not given a second time. Method: two servers,
// of which the first is killed. `make matrix` does it on every version.
#include "stores/postgres_fixture.hpp"
#include "support/servers/kinds.hpp"

#include <atomic>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class PostgresFailover : public testing::Test {
protected:
    static Deadline soon() { return Deadline::in(host_clock(), 1min); }
    [[nodiscard]] std::string url() const {
        return fmt::format("postgres://{}:{}@127.0.0.1:{},127.0.0.1:{}/postgres?schema=failover", server_user_name,
                           server_password, primary_->port(), standby_->port());
    }
    /// From now on a commit returns when the standby has it.
    void wait_for_the_standby() const {
        ByHand shell(primary_->port());
        shell("ALTER SYSTEM SET synchronous_standby_names = '*'");
        shell("SELECT pg_reload_conf()");
        const Deadline end = soon();
        while (shell("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1")
            ASSERT_FALSE(end.passed(host_clock()));
    }
    void fail_over() const {
        primary_->kill();
        ASSERT_EQ(ByHand(standby_->port())("SELECT pg_promote()"), "t");
    }

    const std::unique_ptr<Server> primary_ = start_postgres_server();
    const std::unique_ptr<Server> standby_ = start_postgres_standby_from_files(*primary_);
};

TEST_F(PostgresFailover, WhatWasAcknowledgedIsThereWhenThePrimaryWaitedForItsStandby) {
    wait_for_the_standby();
    const auto store = must(open_store(url()));
    const Acquire alice = by_alice(lock("x"), 1h);
    const LockStatus before = must(store->apply_one(alice, soon())).lock;
    EXPECT_THAT(store->apply_one(queued(by_bob(lock("x"))), soon()), RefusedWith(Errc::lock_conflict));
    const auto id = store->info().store_id;
    fail_over();
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), Granted()) << "the same store object goes on";
    const auto other = must(open_store(url()));
    const LockStatus after = must(other->inspect(lock("x"), soon()));
    EXPECT_EQ(after.token, before.token);
    EXPECT_EQ(after.waiters, 1U);
    EXPECT_EQ(other->info().store_id, id);
    EXPECT_THAT(store->apply_one(release(alice), soon()), Granted());
    sound_lock(*store, lock("x"), soon());
}

TEST_F(PostgresFailover, ATokenThatItTookBackIsNotGivenAgain) {
    const auto store = must(open_store(url()));
    const Acquire first = by_alice(lock("x"), 1h);
    must(store->apply_one(first, soon()));
    must(store->apply_one(release(first), soon()));
    const Deadline end = soon();
    ByHand shell(primary_->port());
    while (shell("SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()") != "1")
        ASSERT_FALSE(end.passed(host_clock()));
    // What comes now the standby never gets.
    standby_->kill();
    const Acquire lost = by_alice(lock("x"), 1h);
    const FencingToken token = must(store->apply_one(lost, soon())).lock.token;
    primary_->kill();
    standby_->start();
    fail_over();
    const auto after = must(open_store(url()));
    EXPECT_THAT(after->apply_one(renewal(lost), soon()), RefusedWith(Errc::lock_not_held));
    EXPECT_GT(must(after->apply_one(by_bob(lock("x")), soon())).lock.token, token);
    sound_lock(*after, lock("x"), soon());
}

TEST_F(PostgresFailover, OfManyClientsNoTwoHoldTheLockMeanwhile) {
    wait_for_the_standby();
    must(must(open_store(url()))->apply_one(by_alice(lock("warm"), 1h), soon()));
    std::atomic<int> inside = 0;
    std::atomic<int> together = 0;
    std::atomic<int> before = 0;
    std::atomic<int> after = 0;
    std::atomic<bool> failed_over = false;
    const auto work = [&] {
        std::unique_ptr<Store> store;
        for (const Deadline end = soon(); after < 40 && !end.passed(host_clock());) {
            if (!store) {
                auto opened = open_store(url());
                if (!opened) continue;
                store = std::move(*opened);
            }
            // Longer than the failover takes, so that nobody's lease ends in between.
            Acquire request = by_alice(lock("x"), 60s);
            request.as = Credentials::random();
            auto reply = store->apply_one(request, soon());
            // Once it may have been granted it is ours to find out: nobody else gets the lock before its lease ends.
            for (bool in_doubt = false; !reply && (in_doubt || reply.error().code == Errc::outcome_unknown);) {
                if (reply.error().code == Errc::lock_conflict) break;
                in_doubt = true;
                reply = store->apply_one(request, soon());
            }
            if (!reply) continue;
            if (inside.fetch_add(1) != 0) ++together;
            std::this_thread::yield();
            --inside;
            ++(failed_over ? after : before);
            auto released = store->apply_one(release(request), soon());
            while (!released && released.error().code != Errc::lock_not_held)
                released = store->apply_one(release(request), soon());
        }
    };
    {
        std::vector<std::jthread> clients;
        for (int i = 0; i < 4; ++i) clients.emplace_back(work);
        for (const Deadline end = soon(); before < 20 && !end.passed(host_clock());) std::this_thread::yield();
        fail_over();
        failed_over = true;
    }
    EXPECT_EQ(together, 0);
    EXPECT_GE(after, 40);
    const auto store = must(open_store(url()));
    sound_lock(*store, lock("x"), soon());
}

}  // namespace
}  // namespace holdfast::tests
