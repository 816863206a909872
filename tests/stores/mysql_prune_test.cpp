// Goal: removing audit events blocks no other client, hides no damage, and is refused as a whole without the right to
// it. Method: a SQL shell beside the store holds rows, stops a DELETE half-way, or takes rights away, on a real server.
#include "stores/mysql_fixture.hpp"

#include <fmt/format.h>

#include <future>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;

class MysqlPrune : public testing::Test {
protected:
    /// One for all of these tests, and no others: they look at its waiting transactions. It has the default that locks
    /// gaps.
    static void SetUpTestSuite() {
        server_ = start_mariadb_server({.arguments = {"--transaction-isolation=REPEATABLE-READ"}});
    }
    static void TearDownTestSuite() { server_.reset(); }

    [[nodiscard]] Reply apply(const Request& request) { return store_->apply_one(request, MysqlPlace::soon()); }
    [[nodiscard]] std::vector<Reply> apply_all(const std::vector<Request>& requests) {
        return must(store_->apply(requests, MysqlPlace::soon()));
    }
    /// Gives the lock so many events, the first of which is its grant.
    Acquire with_events(const LockName& name, int events) {
        const Acquire alice = by_alice(name, 1h);
        must(apply(alice));
        for (int i = 1; i < events; ++i) must(apply(renewal(alice)));
        return alice;
    }
    [[nodiscard]] std::vector<std::uint64_t> seqs(const LockName& name) {
        std::vector<std::uint64_t> found;
        for (const AuditEvent& event : must(store_->history({.name = name}, MysqlPlace::soon())))
            found.push_back(event.seq);
        return found;
    }

    MysqlPlace place_{server_->port()};
    MysqlByHand& shell_ = place_.shell;
    std::unique_ptr<Store> store_ = place_.open();

private:
    inline static std::unique_ptr<Server> server_{};
};

// At REPEATABLE READ a DELETE locks the gaps between what it removes, and before it, where others write.
TEST_F(MysqlPrune, WhileEventsAreRemovedOtherLocksAreWritten) {
    const Acquire before = with_events(lock("a"), 1);
    with_events(lock("b"), 5);
    const Acquire behind = with_events(lock("c"), 1);
    shell_.run("CREATE TRIGGER stop AFTER DELETE ON holdfast_audit FOR EACH ROW SET @stopped = GET_LOCK('gate', 30)");
    ASSERT_EQ(shell_.value("SELECT GET_LOCK('gate', 0)"), "1");
    auto pruning = std::async(std::launch::async, [&] { return apply(Prune{lock("b"), 4, "root"}); });
    const Deadline end = MysqlPlace::soon();
    while (shell_.value("SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock'") == "0" &&
           !end.passed(host_clock()))
        std::this_thread::yield();

    const auto others = place_.open();
    const std::vector<Request> requests{renewal(before), renewal(behind), by_bob(lock("aa")), by_bob(lock("bb"))};
    for (const Request& request : requests) EXPECT_THAT(others->apply_one(request, MysqlPlace::soon()), Granted());
    EXPECT_EQ(pruning.wait_for(0s), std::future_status::timeout) << "all of that happened meanwhile";
    shell_.run("DO RELEASE_LOCK('gate')");
    EXPECT_THAT(pruning.get(), Granted());
    EXPECT_THAT(seqs(lock("b")), ElementsAre(5, 6));
}

// A DELETE looks at the event behind the last one that it removes, too, and waits for it if somebody else has it.
TEST_F(MysqlPrune, EventsAreRemovedWhileOtherLocksAreBeingWritten) {
    const Acquire alice = with_events(lock("b"), 1);
    for (const char* name : {"a", "c"}) with_events(lock(name), 1);
    shell_.run("START TRANSACTION");
    for (const char* name : {"a", "c"})
        shell_.run(fmt::format("UPDATE holdfast_audit SET reason = 'x' WHERE name = '{}' AND seq = 1", name));
    EXPECT_THAT(apply_all({renewal(alice), Prune{lock("b"), 1, "root"}}), Each(Granted()));
    shell_.run("ROLLBACK");
    EXPECT_THAT(seqs(lock("b")), ElementsAre(2, 3));
}

// Many changes are written with statements that the server keeps, and in several packets.
TEST_F(MysqlPrune, ManyLocksArePrunedAtOnce) {
    std::vector<Request> requests;
    std::vector<Request> prunes;
    for (int i = 0; i < 250; ++i) {
        const Acquire alice = by_alice(lock(std::to_string(i)), 1h);
        requests.insert(requests.end(), {alice, renewal(alice), renewal(alice)});
        prunes.insert(prunes.end(), {Prune{alice.name, 1, "root"}, renewal(alice), Prune{alice.name, 2, "root"}});
    }
    EXPECT_THAT(apply_all(requests), Each(Granted()));
    EXPECT_THAT(apply_all(prunes), Each(Granted()));
    EXPECT_EQ(shell_.value("SELECT COUNT(*) FROM holdfast_audit"), "1000");
    EXPECT_EQ(shell_.value("SELECT MIN(seq) FROM holdfast_audit"), "3");
}

// What a lock that looks new has of older events is all that tells that it was used, and its record is lost.
TEST_F(MysqlPrune, ALockThatLostItsRecordIsNotANewOneForAPrune) {
    with_events(lock("x"), 1);
    shell_.run("DELETE FROM holdfast_locks");
    const Acquire bob = by_bob(lock("x"), 1h);
    EXPECT_THAT(apply_all({bob, renewal(bob), Prune{lock("x"), 1, "root"}}), Each(RefusedWith(Errc::record_corrupt)));
    EXPECT_EQ(shell_.value("SELECT COUNT(*) FROM holdfast_audit WHERE seq = 1"), "1");
}

TEST_F(MysqlPrune, AUserThatMayNotRemoveEventsIsToldSoAndSpoilsNothing) {
    const Acquire alice = with_events(lock("x"), 5);
    const std::string database = place_.database.name();
    shell_.run("CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'plain'");
    shell_.run(fmt::format("GRANT SELECT, INSERT, UPDATE ON {}.* TO plain@'127.0.0.1'", database));
    shell_.run(fmt::format("GRANT DELETE ON {}.holdfast_queue TO plain@'127.0.0.1'", database));
    store_ = must(open_store(fmt::format("mysql://plain:plain@127.0.0.1:{}/{}", place_.database.port(), database)));
    EXPECT_THAT(apply(Prune{lock("x"), 3, "root"}), RefusedWith(Errc::denied));
    EXPECT_THAT(seqs(lock("x")), ElementsAre(1, 2, 3, 4, 5)) << "nothing was changed";
    EXPECT_THAT(apply_all({renewal(alice), Prune{lock("x"), 3, "root"}, by_bob(lock("y"))}),
                ElementsAre(Granted(), RefusedWith(Errc::denied), Granted()));
    EXPECT_THAT(seqs(lock("x")), ElementsAre(1, 2, 3, 4, 5, 6));
}

}  // namespace
}  // namespace holdfast::tests
