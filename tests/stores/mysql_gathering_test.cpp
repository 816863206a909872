// Goal: threads that share a transaction share nothing else, and the first use of a lock costs no more than the next.
// Method: somebody with a SQL shell locks a row, or a table, and keeps it; the server counts statements.
#include "stores/mysql_fixture.hpp"

#include <fmt/format.h>

#include <barrier>
#include <functional>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class MysqlGathering : public testing::Test {
protected:
    /// One for all of these tests, and no others: its counters are looked at.
    static void SetUpTestSuite() { server_ = start_mariadb_server(); }
    static void TearDownTestSuite() { server_.reset(); }

    [[nodiscard]] static Deadline soon() { return MysqlPlace::soon(); }
    [[nodiscard]] int count(const std::string& counter) {
        return std::stoi(shell_.run("SHOW GLOBAL STATUS LIKE '" + counter + "'").at(0).at(1));
    }

    /// Four programs do `what` to a lock that nobody has used before, all at once, so many times.
    void contend(int rounds, const std::function<void(Store&, const LockName&)>& what) {
        std::barrier together(contenders);
        std::vector<std::unique_ptr<Store>> stores;
        for (int i = 0; i < contenders; ++i) stores.push_back(place_.open());
        std::vector<std::jthread> threads;
        for (const auto& store : stores)
            threads.emplace_back([&] {
                for (int round = 0; round < rounds; ++round) {
                    together.arrive_and_wait();
                    what(*store, lock(std::to_string(round)));
                }
            });
    }

    static constexpr int contenders = 4;
    MysqlPlace place_{server_->port()};
    MysqlByHand& shell_ = place_.shell;
    std::unique_ptr<Store> store_ = place_.open();

private:
    inline static std::unique_ptr<Server> server_{};
};

TEST_F(MysqlGathering, ARowThatSomebodyHasLockedHoldsUpItsOwnLockAlone) {
    must(store_->apply_one(by_alice(lock("x")), soon()));
    shell_.run("START TRANSACTION");
    shell_.run("SELECT * FROM holdfast_locks WHERE name = 'x' FOR UPDATE");
    std::vector<std::jthread> stuck;
    for (int i = 0; i < 8; ++i) stuck.emplace_back([&] { std::ignore = store_->apply_one(by_bob(lock("x")), soon()); });
    std::vector<std::jthread> others;
    std::atomic<int> failures = 0;
    for (int i = 0; i < 8; ++i)
        others.emplace_back([&, i] {
            // A transaction that waits for a row tries six times, for a second each.
            const auto soon_enough = [] { return Deadline::in(host_clock(), 4s); };
            const Acquire mine = by_alice(lock("other " + std::to_string(i)));
            if (!store_->apply_one(mine, soon())) ++failures;
            for (int turn = 0; turn < 20; ++turn)
                if (!store_->apply_one(renewal(mine), soon_enough())) ++failures;
        });
    others.clear();
    shell_.run("ROLLBACK");
    EXPECT_EQ(failures, 0);
}

TEST_F(MysqlGathering, ThreadsThatAskAtOnceShareTransactions) {
    constexpr int many = 40;
    must(store_->apply({}, soon()));
    const int before = count("Com_commit");
    // Every transaction looks at this table.
    shell_.run("LOCK TABLES holdfast_meta WRITE");
    std::vector<std::jthread> threads;
    for (int i = 0; i < many; ++i)
        threads.emplace_back(
            [&, i] { EXPECT_THAT(store_->apply_one(by_alice(lock(std::to_string(i))), soon()), Granted()); });
    // Two that went by themselves, and the first that has gathered others.
    while (std::stoi(shell_.value("SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for "
                                  "table%'")) < 3)
        std::this_thread::yield();
    shell_.run("UNLOCK TABLES");
    threads.clear();
    EXPECT_LT(count("Com_commit") - before, many);
}

TEST_F(MysqlGathering, TheFirstUseOfALockIsOneTransaction) {
    must(store_->apply({}, soon()));
    const int selects = count("Com_select");
    const int inserts = count("Com_insert");
    const int rollbacks = count("Com_rollback");
    must(store_->apply_one(by_alice(lock("x")), soon()));
    EXPECT_EQ(count("Com_select") - selects, 4) << "its row; the time, with the queue; its history; its row again";
    EXPECT_EQ(count("Com_insert") - inserts, 2) << "its row, and its event";
    EXPECT_EQ(count("Com_rollback") - rollbacks, 0);
}

// Statements that are sent for many locks are parsed once.
TEST_F(MysqlGathering, ManyLocksAreWrittenWithStatementsThatTheServerKeeps) {
    must(store_->apply_one(by_alice(lock("x")), soon()));
    const auto granted = [&](const std::string& prefix) {
        std::vector<Request> requests;
        for (int i = 0; i < 8; ++i) requests.emplace_back(by_alice(lock(prefix + std::to_string(i))));
        EXPECT_THAT(must(store_->apply(requests, soon())), testing::Each(Granted()));
        // The same locks once more: now they have rows.
        for (Request& request : requests) request = renewal(std::get<Acquire>(request));
        EXPECT_THAT(must(store_->apply(requests, soon())), testing::Each(Granted()));
    };
    // Locks are read first or not, each way with statements of its own. Sooner or later all of them are there.
    for (int i = 0, before = -1; count("Com_stmt_prepare") != before; ++i) {
        ASSERT_LT(i, 500);
        before = count("Com_stmt_prepare");
        granted(std::to_string(i) + " ");
    }
    EXPECT_THAT(count("Prepared_stmt_count"), testing::AllOf(testing::Ge(2), testing::Le(5)));
}

TEST_F(MysqlGathering, AServerThatKeepsNoStatementsTakesThemAsText) {
    must(store_->apply_one(by_alice(lock("x")), soon()));
    shell_.run("SET GLOBAL max_prepared_stmt_count = 0");
    std::vector<Request> requests;
    for (int i = 0; i < 8; ++i) requests.emplace_back(by_alice(lock(std::to_string(i))));
    EXPECT_THAT(must(store_->apply(requests, soon())), testing::Each(Granted()));
    shell_.run("SET GLOBAL max_prepared_stmt_count = DEFAULT");
}

// None of them has a row to lock, so the insert of the row decides which one was first.
TEST_F(MysqlGathering, OfManyFirstUsersOfALockOneIsGrantedIt) {
    constexpr int rounds = 40;
    must(store_->apply({}, soon()));
    std::atomic<int> granted = 0;
    contend(rounds, [&](Store& store, const LockName& name) {
        const Reply reply = store.apply_one(by_alice(name), soon());
        if (reply)
            ++granted;
        else
            EXPECT_THAT(reply, RefusedWith(Errc::lock_conflict));
    });
    EXPECT_EQ(granted, rounds);
}

// A waiter for a lock that was never granted has a place in its queue, and so have all that come at the same time.
TEST_F(MysqlGathering, TheFirstTicketsOfANewLockHaveDifferentNumbers) {
    constexpr int rounds = 20;
    must(store_->apply_one(by_alice(lock("freeze")), soon()));
    contend(rounds, [&](Store& store, const LockName& name) {
        Acquire mine = queued(by_bob(name), 1h);
        mine.unless_held = {lock("freeze")};
        EXPECT_THAT(store.apply_one(mine, soon()), RefusedWith(Errc::lock_conflict));
    });
    EXPECT_EQ(shell_.value("SELECT COUNT(DISTINCT name, number) FROM holdfast_queue"),
              std::to_string(contenders * rounds));
}

}  // namespace
}  // namespace holdfast::tests
