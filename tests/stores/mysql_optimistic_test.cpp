// Goal: a change that is decided before the lock was read is right, or is not made. Method: what was predicted is
// altered without the store's knowledge. Which way a change went shows in the server's log of statements. Each test
// runs with the lock alone, which is written as text, and in a batch with other locks, which are written with bound
// values.
#include "stores/mysql_fixture.hpp"
#include "support/servers/clock.hpp"

#include <fmt/format.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class MysqlOptimistic : public testing::TestWithParam<std::size_t> {
protected:
    static void SetUpTestSuite() {
        server_ = start_mariadb_server(
            {.arguments = {"--general-log", "--log-output=TABLE"}, .environment = clock().environment()});
    }
    static void TearDownTestSuite() { server_.reset(); }

    /// The server's, in all of these tests.
    static ServerClock& clock() {
        static ServerClock clock;
        return clock;
    }
    [[nodiscard]] static Deadline soon() { return MysqlPlace::soon(); }

    /// After its first change it knows the server's clock, and predicts.
    MysqlOptimistic() { must(store_->apply_one(by_alice(lock("first")), soon())); }

    /// The reply to `request`, which travels with as many others as the test's parameter says.
    Reply apply(const Request& request) {
        auto replies = must(store_->apply(batch_with(request), soon()));
        for (std::size_t i = 1; i < replies.size(); ++i) EXPECT_THAT(replies[i], Granted());
        return std::move(replies.front());
    }
    /// The others take locks that nobody has used.
    [[nodiscard]] std::vector<Request> batch_with(const Request& request) {
        std::vector<Request> batch{request};
        while (batch.size() < GetParam()) batch.emplace_back(by_alice(lock(fmt::format("other/{}", ++others_))));
        return batch;
    }
    [[nodiscard]] bool is_predicted(const Request& request) {
        const std::string before = shell_.value(count_reads);
        must(apply(request));
        return shell_.value(count_reads) == before;
    }

    static constexpr const char* count_reads =
        "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE 'SELECT l.name%'";
    MysqlPlace place_{server_->port()};
    MysqlByHand& shell_ = place_.shell;
    const std::unique_ptr<Store> store_ = place_.open();

private:
    int others_ = 0;
    inline static std::unique_ptr<Server> server_{};
};

// A prediction comes too late on a machine that is busy, and then the lock is read. So: sooner or later.
TEST_P(MysqlOptimistic, ALockThatNobodyElseUsesIsNotReadBeforeItIsChanged) {
    int acquired = 0;
    int renewed = 0;
    int released = 0;
    for (int i = 0; acquired * renewed * released == 0; ++i) {
        ASSERT_LT(i, 500);
        const Acquire mine = by_alice(lock("x" + std::to_string(i)));
        acquired += is_predicted(mine) ? 1 : 0;
        renewed += is_predicted(renewal(mine)) ? 1 : 0;
        released += is_predicted(release(mine)) ? 1 : 0;
        const LockStatus seen = must(store_->inspect(mine.name, soon()));
        EXPECT_EQ(seen.state, LockState::free);
        EXPECT_EQ(seen.seq, 3U);
        EXPECT_EQ(must(store_->history({.name = mine.name}, soon())).size(), 3U);
    }
}

TEST_P(MysqlOptimistic, WhatSomebodyElseDidMeanwhileCounts) {
    const Acquire mine = by_alice(lock("x"));
    must(apply(mine));
    const auto other = place_.open();
    must(other->apply_one(Break{mine.name, mine.as.lock_id, "operator", "test"}, soon()));
    EXPECT_THAT(apply(renewal(mine)), RefusedWith(Errc::lock_not_held));
    must(other->apply_one(by_bob(mine.name), soon()));
    EXPECT_THAT(apply(release(mine)), RefusedWith(Errc::lock_not_held));
    must(other->apply_one(by_bob(lock("y")), soon()));
    EXPECT_THAT(apply(by_alice(lock("y"))), RefusedWith(Errc::lock_conflict));
    for (const char* name : {"x", "y"}) EXPECT_EQ(must(store_->inspect(lock(name), soon())).lease->holder.text, "bob");
}

// Others come between two changes by the same object: the queue decides, and not what it remembers.
TEST_P(MysqlOptimistic, NobodyPassesTheQueue) {
    const auto other = place_.open();
    const Acquire mine = by_alice(lock("x"));
    must(apply(mine));
    const Acquire waiting = queued(by_bob(mine.name));
    EXPECT_THAT(other->apply_one(waiting, soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(must(apply(renewal(mine))).lock.waiters, 1U);
    EXPECT_EQ(must(apply(release(mine))).lock.lease->lock_id, waiting.as.lock_id);
    EXPECT_THAT(apply(by_alice(mine.name)), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(other->apply_one(waiting, soon()), Granted());
}

TEST_P(MysqlOptimistic, ARowThatWasDamagedMeanwhileBlocksItsLock) {
    for (const std::string change : {"token = token + 1", "lock_id = UUID()", "seq = seq + 1",
                                     "data = INSERT(data, 31, 1, CHAR(ASCII(SUBSTR(data, 31, 1)) ^ 1))"}) {
        const Acquire mine = by_alice(lock(change));
        must(apply(mine));
        shell_.run("UPDATE holdfast_locks SET " + change + " WHERE name = " + hex_literal(change));
        EXPECT_THAT(apply(renewal(mine)), RefusedWith(Errc::record_corrupt)) << change;
        EXPECT_THAT(apply(release(mine)), RefusedWith(Errc::record_corrupt)) << change;
    }
}

// The row of a lock that this process knows must not come back: what was decided while it was gone would be lost.
TEST_P(MysqlOptimistic, ARowThatIsGoneIsNotWrittenAgain) {
    const Acquire mine = by_alice(lock("x"));
    must(apply(mine));
    shell_.run("DELETE FROM holdfast_locks WHERE name = 'x'");
    EXPECT_THAT(apply(renewal(mine)), RefusedWith(Errc::record_corrupt));
    EXPECT_EQ(shell_.value("SELECT COUNT(*) FROM holdfast_locks WHERE name = 'x'"), "0");
}

// The oldest events are gone, so the new lock's first event would not meet one with its number.
TEST_P(MysqlOptimistic, ALockThatLostItsRowIsNotNew) {
    const auto other = place_.open();
    const Acquire old = by_bob(lock("x"));
    must(other->apply_one(old, soon()));
    must(other->apply_one(renewal(old), soon()));
    shell_.run("DELETE FROM holdfast_locks WHERE name = 'x'");
    shell_.run("DELETE FROM holdfast_audit WHERE name = 'x' AND seq = 1");
    EXPECT_THAT(apply(by_alice(old.name)), RefusedWith(Errc::record_corrupt));
}

// A row that was made ready for a lock is in the way of a prediction, and of nothing else.
TEST_P(MysqlOptimistic, ARowWithoutARecordIsALockThatWasNeverUsed) {
    shell_.run("INSERT INTO holdfast_locks (name) VALUES ('x')");
    EXPECT_THAT(apply(by_alice(lock("x"))), Granted());
}

// Only the server's clock says whether a lease has run out.
TEST_P(MysqlOptimistic, ALeaseThatHasRunOutAtTheServerIsNotRenewed) {
    const Acquire mine = by_alice(lock("x"), 30s);
    must(apply(mine));
    clock().step(1h);
    EXPECT_THAT(apply(renewal(mine)), RefusedWith(Errc::lock_expired));
}

TEST_P(MysqlOptimistic, NothingIsWrittenToAServerThatHasBecomeReadOnly) {
    const Acquire mine = by_alice(lock("x"));
    must(apply(mine));
    shell_.run("SET GLOBAL read_only = 1");
    const auto replies = store_->apply(batch_with(release(mine)), soon());
    shell_.run("SET GLOBAL read_only = 0");
    EXPECT_THAT(replies, RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(must(store_->inspect(mine.name, soon())).state, LockState::held);
}

// A transaction that was left open would keep everybody from altering its tables.
TEST_P(MysqlOptimistic, ALookLeavesTheTablesToOthers) {
    const Acquire mine = by_alice(lock("x"));
    must(apply(mine));
    EXPECT_THAT(apply(by_bob(mine.name)), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(must(store_->inspect(mine.name, soon())).state, LockState::held);
    shell_.run("SET SESSION lock_wait_timeout = 1");
    for (const char* table : {"locks", "queue", "audit", "meta"})
        shell_.run(fmt::format("ALTER TABLE holdfast_{} COMMENT = 'seen'", table));
}

INSTANTIATE_TEST_SUITE_P(Requests, MysqlOptimistic, testing::Values(1, 8), testing::PrintToStringParamName());

}  // namespace
}  // namespace holdfast::tests
