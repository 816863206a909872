// Goal: what MySQL and MariaDB do differently from what one expects does not reach the locks.
// Method: a SQL shell beside the store creates each of these situations, on a real server.
#include "stores/mysql_fixture.hpp"

#include <fmt/format.h>

#include <atomic>
#include <future>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class MysqlHazards : public testing::Test {
protected:
    /// One for all of these tests, and no others: they look at its waiting transactions.
    static void SetUpTestSuite() {
        server_ =
            start_mariadb_server({.arguments = {"--transaction-isolation=REPEATABLE-READ",
                                                "--sql-mode=", "--default-time-zone=+05:00", "--wait-timeout=7777"}});
    }
    static void TearDownTestSuite() { server_.reset(); }

    [[nodiscard]] Reply apply(const Request& request) { return store_->apply_one(request, MysqlPlace::soon()); }
    [[nodiscard]] LockStatus inspect(const char* name) { return must(store_->inspect(lock(name), MysqlPlace::soon())); }

    /// Runs `work` in a thread and returns when the server has made it wait for a row lock.
    template <class Work>
    [[nodiscard]] auto blocked(Work work) {
        auto result = std::async(std::launch::async, work);
        MysqlByHand observer(place_.database.port());
        // The server shows the same state again within 100 ms.
        while (result.wait_for(150ms) != std::future_status::ready &&
               observer.value("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'") ==
                   "0")
            continue;
        return result;
    }

    MysqlPlace place_{server_->port()};
    MysqlByHand& shell_ = place_.shell;
    std::unique_ptr<Store> store_ = place_.open();

private:
    inline static std::unique_ptr<Server> server_{};
};

constexpr std::string_view select_now = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000";

// NOW() is when the statement began. A lease that was counted from before a wait would be short by the wait, and a
// steal decided by it would come early.
TEST_F(MysqlHazards, TheClockIsReadAfterTheWaitForTheRow) {
    const Acquire alice = by_alice(lock("x"), 10s);
    must(apply(alice));
    must(apply(release(alice)));
    shell_.run("START TRANSACTION");
    shell_.run("SELECT * FROM holdfast_locks FOR UPDATE");
    auto waiting = blocked([&] { return apply(by_bob(lock("x"), 10s)); });
    std::this_thread::sleep_for(500ms);
    const Instant freed{std::chrono::milliseconds{std::stoll(shell_.value(std::string(select_now)))}};
    shell_.run("COMMIT");
    const Outcome bob = must(waiting.get());
    EXPECT_GE(bob.lock.lease->acquired_at, freed);
    EXPECT_GE(bob.lock.lease->expires_at, freed + 10s);
}

// Error 1205 undoes one statement and leaves the transaction open. A client that continues commits the rest of it.
TEST_F(MysqlHazards, ALockWaitThatTimesOutLeavesNothingHalfDone) {
    must(store_->apply({}, MysqlPlace::soon()));
    shell_.run("START TRANSACTION");
    // Keeps the gap into which the event goes; the record is written before it.
    shell_.run("SELECT * FROM holdfast_audit WHERE name = 'x' FOR UPDATE");
    EXPECT_THAT(apply(by_bob(lock("x"))), RefusedWith(Errc::store_unavailable));
    shell_.run("ROLLBACK");
    EXPECT_EQ(inspect("x").state, LockState::free);
    EXPECT_EQ(inspect("x").token, FencingToken{});
    must(apply(by_alice(lock("y"))));
    EXPECT_EQ(inspect("x").token, FencingToken{}) << "what the connection does next commits nothing of it";
    EXPECT_THAT(apply(by_bob(lock("x"))), Granted());
}

// The server rolls one of two transactions back that wait for each other. It can be repeated, so the caller need not be
// told.
TEST_F(MysqlHazards, ADeadlockIsRepeated) {
    for (const char* name : {"a", "b"}) must(apply(by_alice(lock(name), 1h)));
    shell_.run("CREATE TABLE weight (id INT PRIMARY KEY, x INT) ENGINE = InnoDB");
    shell_.run("START TRANSACTION");
    // Makes the shell's transaction the heavier one, so that the store's is the victim.
    for (int i = 0; i < 200; ++i) shell_.run(fmt::format("INSERT INTO weight VALUES ({}, 0)", i));
    shell_.run("SELECT * FROM holdfast_locks WHERE name = 'b' FOR UPDATE");
    auto waiting = blocked([&] {
        return must(store_->apply(std::vector<Request>{by_bob(lock("a")), by_bob(lock("b"))}, MysqlPlace::soon()));
    });
    shell_.run("SELECT * FROM holdfast_locks WHERE name = 'a' FOR UPDATE");
    shell_.run("COMMIT");
    EXPECT_THAT(waiting.get(), testing::Each(RefusedWith(Errc::lock_conflict))) << "an answer, and no error";
}

// At REPEATABLE READ, which is the default, a plain read can be older than a locking one in the same transaction. A
// lock and its queue would not belong together.
TEST_F(MysqlHazards, TheIsolationIsOursAndNotTheServers) {
    must(apply(by_alice(lock("x"), 1h)));
    shell_.run("START TRANSACTION");
    shell_.run("SELECT * FROM holdfast_locks WHERE name = 'x' FOR UPDATE");
    auto waiting = blocked([&] { return apply(by_bob(lock("x"))); });
    EXPECT_THAT(shell_.run("SELECT DISTINCT trx_isolation_level FROM information_schema.innodb_trx WHERE trx_state = "
                           "'LOCK WAIT'"),
                testing::ElementsAre(testing::ElementsAre("READ COMMITTED")));
    shell_.run("COMMIT");
    EXPECT_THAT(waiting.get(), RefusedWith(Errc::lock_conflict));
}

// Without the strict mode, which a server may be told to do without, a text that is too long is cut in silence.
TEST_F(MysqlHazards, ATextThatDoesNotFitIsRefusedAndNotCut) {
    must(store_->apply({}, MysqlPlace::soon()));
    shell_.run("ALTER TABLE holdfast_audit MODIFY holder VARBINARY(3) NOT NULL");
    EXPECT_THAT(apply(by_alice(lock("x"))), RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(inspect("x").seq, 0U);
    EXPECT_THAT(apply(by("bob", lock("x"), 1h)), Granted());
}

// An idle connection that the server closes takes its GET_LOCK along; one that waits for rows for longer than a lease
// lasts helps nobody. A trigger of ours sees what is in force.
TEST_F(MysqlHazards, TheTimeoutsOfASessionAreOursAndNotTheServers) {
    must(store_->apply({}, MysqlPlace::soon()));
    shell_.run("CREATE TABLE seen (what TEXT)");
    shell_.run(
        "CREATE TRIGGER look BEFORE INSERT ON holdfast_audit FOR EACH ROW INSERT INTO seen VALUES (CONCAT_WS(' ', "
        "@@session.wait_timeout, @@session.innodb_lock_wait_timeout, @@session.time_zone))");
    must(apply(by_alice(lock("x"))));
    EXPECT_EQ(shell_.value("SELECT what FROM seen"), "600 1 +00:00");
}

// A row that is made ready for a lock is not a lock.
TEST_F(MysqlHazards, ARowWithoutARecordIsALockThatWasNeverUsed) {
    must(store_->apply({}, MysqlPlace::soon()));
    shell_.run("INSERT INTO holdfast_locks (name) VALUES ('x')");
    EXPECT_THAT(must(store_->list({.with_free = true}, MysqlPlace::soon())), testing::IsEmpty());
    EXPECT_EQ(inspect("x").seq, 0U);
    EXPECT_THAT(apply(renewal(by_bob(lock("x")))), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(by_bob(lock("x"))), Granted());
}

// Two names that exclude each other must meet at a row, also when neither was ever used.
TEST_F(MysqlHazards, LocksThatExcludeEachOtherAreNeverBothGranted) {
    const auto other = place_.open();
    int granted = 0;
    for (int round = 0; round < 200 && !HasFailure(); ++round) {
        Acquire a = by_alice(lock(fmt::format("b {}", round)));
        Acquire b = by_bob(lock(fmt::format("a {}", round)));
        a.unless_held = {b.name};
        b.unless_held = {a.name};
        auto first = std::async(std::launch::async, [&] { return apply(a); });
        const Reply second = other->apply_one(b, MysqlPlace::soon());
        const int both = (first.get() ? 1 : 0) + (second ? 1 : 0);
        EXPECT_LE(both, 1) << "round " << round;
        granted += both;
    }
    EXPECT_GT(granted, 0);
}

TEST_F(MysqlHazards, ARecordThatWasDeletedOrEmptiedBlocksItsLock) {
    for (const char* name : {"deleted", "emptied", "sound"}) must(apply(by_alice(lock(name))));
    shell_.run("DELETE FROM holdfast_locks WHERE name = 'deleted'");
    shell_.run("UPDATE holdfast_locks SET token = 0, lock_id = NULL, seq = 0, data = NULL WHERE name = 'emptied'");
    for (const char* name : {"deleted", "emptied"}) {
        EXPECT_THAT(store_->inspect(lock(name), MysqlPlace::soon()), RefusedWith(Errc::record_corrupt));
        EXPECT_THAT(apply(renewal(by_bob(lock(name)))), RefusedWith(Errc::record_corrupt));
        EXPECT_THAT(apply(by_bob(lock(name))), RefusedWith(Errc::record_corrupt));
        EXPECT_THAT(apply(by_bob(lock(name))), RefusedWith(Errc::record_corrupt)) << "also the second time";
    }
    EXPECT_THAT(apply(by_bob(lock("sound"))), RefusedWith(Errc::lock_conflict));
}

// Whatever is left of the history shows that the lock was used. New locks beside it are none the worse for it, whether
// they are few or many: these are written in different ways.
TEST_F(MysqlHazards, ALockThatLostItsRecordAndItsFirstEventIsNotANewOne) {
    const Acquire alice = by_alice(lock("x"));
    must(apply(alice));
    must(apply(renewal(alice)));
    shell_.run("DELETE FROM holdfast_locks");
    shell_.run("DELETE FROM holdfast_audit WHERE seq = 1");
    for (const int others : {1, 8}) {
        std::vector<Request> requests{by_bob(lock("x"))};
        for (int i = 0; i < others; ++i) requests.emplace_back(by_bob(lock(fmt::format("{} of {}", i, others))));
        const auto replies = must(store_->apply(requests, MysqlPlace::soon()));
        EXPECT_THAT(replies.front(), RefusedWith(Errc::record_corrupt));
        EXPECT_THAT(std::span(replies).subspan(1), testing::Each(Granted()));
    }
}

TEST_F(MysqlHazards, AnEventBehindTheRecordBlocksThatLockAlone) {
    const Acquire alice = by_alice(lock("x"));
    must(apply(alice));
    shell_.run(
        "INSERT INTO holdfast_audit SELECT name, 2, at, event, token, lock_id, holder, actor, reason, data "
        "FROM holdfast_audit");
    for (const int others : {2, 8}) {
        std::vector<Request> requests{renewal(alice)};
        for (int i = 0; i < others; ++i) requests.emplace_back(by_bob(lock(fmt::format("{} of {}", i, others))));
        const auto replies = must(store_->apply(requests, MysqlPlace::soon()));
        EXPECT_THAT(replies.front(), RefusedWith(Errc::record_corrupt));
        EXPECT_THAT(std::span(replies).subspan(1), testing::Each(Granted()));
    }
}

TEST_F(MysqlHazards, AQueueThatIsTooLongToReadIsCountedAndServedInOrder) {
    const Acquire alice = by_alice(lock("x"), 1h);
    must(apply(alice));
    std::vector<Acquire> line;
    for (int i = 0; i < 40; ++i) {
        line.push_back(queued(by("waiter " + std::to_string(i), lock("x"), 30s), i < 20 ? 5s : 1h));
        EXPECT_THAT(apply(line.back()), RefusedWith(Errc::lock_conflict));
    }
    EXPECT_EQ(inspect("x").waiters, 40U);
    for (const Deadline end = Deadline::in(host_clock(), 1min); inspect("x").waiters > 20 && !end.passed(host_clock());)
        std::this_thread::sleep_for(20ms);
    EXPECT_EQ(inspect("x").waiters, 20U) << "half of the tickets have run out";
    must(apply(release(alice)));
    EXPECT_THAT(apply(line[30]), RefusedWith(Errc::lock_conflict)) << "somebody is before it";
    const Outcome first = must(apply(line[20]));
    EXPECT_EQ(first.lock.waiters, 19U);
    EXPECT_EQ(shell_.value("SELECT COUNT(*) FROM holdfast_queue"), "19") << "the dead were swept out";
}

TEST_F(MysqlHazards, AStoreThatIsGoneIsNotCreatedAgain) {
    must(apply(by_alice(lock("x"))));
    shell_.run("DROP TABLE holdfast_locks, holdfast_queue, holdfast_audit, holdfast_meta");
    EXPECT_THAT(apply(by_bob(lock("x"))), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store_->inspect(lock("x"), MysqlPlace::soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(shell_.value("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"), "0");
    // Somebody else may begin a new one, which is another store.
    must(place_.open()->apply({}, MysqlPlace::soon()));
    EXPECT_THAT(apply(by_bob(lock("x"))), RefusedWith(Errc::store_unavailable));
}

TEST_F(MysqlHazards, ACreationThatStoppedHalfWayIsFinished) {
    shell_.run(
        "CREATE TABLE holdfast_meta (id TINYINT NOT NULL PRIMARY KEY, format INT NOT NULL, store_id CHAR(36) "
        "CHARACTER SET ascii COLLATE ascii_bin NOT NULL, created_at BIGINT NOT NULL) ENGINE = InnoDB");
    EXPECT_EQ(inspect("x").seq, 0U);
    EXPECT_FALSE(store_->info().store_id);
    EXPECT_THAT(apply(by_bob(lock("x"))), Granted());
}

TEST_F(MysqlHazards, ANewerFormatAndALostIdentityAreRefused) {
    must(apply(by_alice(lock("x"))));
    shell_.run("UPDATE holdfast_meta SET format = 4");
    EXPECT_THAT(open_store(place_.database.url()), RefusedWith(Errc::format_unsupported));
    EXPECT_THAT(apply(by_bob(lock("y"))), RefusedWith(Errc::format_unsupported));
    shell_.run("DELETE FROM holdfast_meta");
    EXPECT_THAT(place_.open()->apply_one(by_bob(lock("x")), MysqlPlace::soon()), RefusedWith(Errc::record_corrupt));
}

}  // namespace
}  // namespace holdfast::tests
