// Goal: a database lets nobody write but the holder that sealed it last, whatever was begun before. Method: the same
// tests on a SQLite file, PostgreSQL and MariaDB; an earlier holder is a second connection that goes on where it was.
#include "guards/sql/fence.hpp"

#include "guards/sql/protected_place.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class FenceTest : public testing::TestWithParam<SqlDialect> {
protected:
    FenceTest() : place_(GetParam()) { place_("CREATE TABLE t (v INTEGER)"); }

    [[nodiscard]] FencedDatabase sealed(const FenceClaim& claim, FenceOptions options = {}) const {
        return must(FencedDatabase::seal(place_.url(), claim, std::move(options)));
    }
    [[nodiscard]] Result<FencedDatabase> seal(const FenceClaim& claim, FenceOptions options = {}) const {
        return FencedDatabase::seal(place_.url(), claim, std::move(options));
    }
    [[nodiscard]] bool is(SqlDialect dialect) const { return GetParam() == dialect; }

    ProtectedPlace place_;
};

Result<void> add_row(FencedDatabase& database) {
    if (auto begun = database.begin(); !begun) return begun;
    if (auto added = database.run("INSERT INTO t VALUES (1)"); !added) return std::unexpected(added.error());
    return database.commit();
}

TEST_P(FenceTest, TheHolderWrites) {
    auto database = sealed(claim_with(1));
    EXPECT_THAT(add_row(database), Granted());
    EXPECT_THAT(add_row(database), Granted());
    EXPECT_EQ(place_("SELECT COUNT(*) FROM t"), "2");
}

TEST_P(FenceTest, AnEarlierHolderIsRefusedAndNothingOfItIsVisible) {
    auto earlier = sealed(claim_with(1));
    ASSERT_THAT(add_row(earlier), Granted());
    auto newest = sealed(claim_with(2));
    EXPECT_THAT(earlier.begin(), RefusedWith(Errc::fencing_mismatch));
    EXPECT_THAT(add_row(newest), Granted());
    EXPECT_EQ(place_("SELECT COUNT(*) FROM t"), "2");
}

// High water at the write is not enough: what the new holder has read must not change behind it.
TEST_P(FenceTest, ADatabaseIsSealedBeforeItsHolderReads) {
    auto earlier = sealed(claim_with(1));
    auto newest = sealed(claim_with(2));
    ASSERT_THAT(newest.run("SELECT COUNT(*) FROM t"), Granted());
    EXPECT_THAT(add_row(earlier), RefusedWith(Errc::fencing_mismatch));
    EXPECT_EQ(place_("SELECT COUNT(*) FROM t"), "0");
}

TEST_P(FenceTest, ATransactionThatAnEarlierHolderLeftOpenEndsWithoutEffect) {
    if (is(SqlDialect::sqlite)) return;  // A transaction has the file, and nobody can end it from outside.
    auto earlier = sealed(claim_with(1));
    must(earlier.begin());
    ASSERT_THAT(earlier.run("INSERT INTO t VALUES (1)"), Granted());
    auto newest = sealed(claim_with(2));
    EXPECT_FALSE(earlier.commit());
    EXPECT_THAT(add_row(newest), Granted());
    EXPECT_EQ(place_("SELECT COUNT(*) FROM t"), "1");
}

TEST_P(FenceTest, AStatementOfAnEarlierHolderIsEnded) {
    if (is(SqlDialect::sqlite)) return;  // A transaction has the file, and nobody can end it from outside.
    auto earlier = sealed(claim_with(1));
    must(earlier.begin());
    ASSERT_THAT(earlier.run("INSERT INTO t VALUES (1)"), Granted());
    std::jthread running([&] {
        // MariaDB answers a SLEEP whose connection is killed, so the commit decides.
        (void)earlier.run(is(SqlDialect::postgres) ? "SELECT pg_sleep(300)" : "SELECT SLEEP(300)");
        EXPECT_FALSE(earlier.commit());
    });
    auto newest = sealed(claim_with(2));
    running.join();
    EXPECT_EQ(place_("SELECT COUNT(*) FROM t"), "0");
}

// So that nobody can come in between the check and the commit. FOR KEY SHARE would let them.
TEST_P(FenceTest, NobodySealsBetweenTheCheckAndTheCommit) {
    auto database = sealed(claim_with(1));
    must(database.begin());
    const auto shell = place_.connect();
    const char* const hurry = is(SqlDialect::postgres) ? "SET lock_timeout = 50"
                              : is(SqlDialect::mysql)  ? "SET SESSION innodb_lock_wait_timeout = 1"
                                                       : "PRAGMA busy_timeout = 50";
    ASSERT_TRUE(shell->run({.text = hurry, .values = {}}, Deadline::never()));
    const sql::Command steal{.text = "UPDATE holdfast_fence SET token = token + 1", .values = {}};
    const auto stolen = shell->run(steal, Deadline::in(host_clock(), 5s));
    ASSERT_FALSE(stolen);
    EXPECT_EQ(stolen.error().kind, sql::ErrorClass::lock_busy) << stolen.error().message;
    must(database.commit());
    EXPECT_TRUE(shell->run(steal, Deadline::never()));
}

TEST_P(FenceTest, SealingAgainWithTheSameLeaseIsHarmless) {
    const FenceClaim claim = claim_with(1);
    auto first = sealed(claim);
    must(first.begin());
    if (is(SqlDialect::sqlite)) must(first.commit());
    auto second = sealed(claim, {.patience = 0ms});
    if (!is(SqlDialect::sqlite)) {
        EXPECT_THAT(first.commit(), Granted()) << "a session of the same lease goes on";
    }
    EXPECT_THAT(add_row(second), Granted());
}

TEST_P(FenceTest, AnOlderTokenCannotSeal) {
    const auto newest = sealed(claim_with(7));
    EXPECT_THAT(seal(claim_with(6)), RefusedWith(Errc::token_regressed));
}

// A store that lost its last grants in a failover gives the same token twice.
TEST_P(FenceTest, TheSameTokenOfAnotherLeaseCannotSeal) {
    const auto newest = sealed(claim_with(7));
    EXPECT_THAT(seal(claim_with(7)), RefusedWith(Errc::token_regressed));
}

TEST_P(FenceTest, AnotherStoreCannotSealUntilAnOperatorBindsIt) {
    auto database = sealed(claim_with(7));
    FenceClaim moved = claim_with(3);
    moved.store_id = StoreId::random();
    ASSERT_THAT(seal(moved), RefusedWith(Errc::fencing_mismatch));

    const auto shell = place_.connect();
    const auto fence = must(guards::fence::Fence::of(*shell, host_clock(), Deadline::never()));
    must(fence->bind(moved.name, moved.store_id, Deadline::never()));
    EXPECT_THAT(database.begin(), RefusedWith(Errc::fencing_mismatch)) << "the former store's holder";
    auto bound = sealed(moved);
    EXPECT_THAT(add_row(bound), Granted());
    EXPECT_THAT(seal(claim_with(8)), RefusedWith(Errc::fencing_mismatch)) << "the former store";
}

TEST_P(FenceTest, LocksHaveFencesOfTheirOwn) {
    auto one = sealed(claim_with(5));
    FenceClaim other = claim_with(1);
    other.name = lock("other' \"name`\\");
    auto two = sealed(other);
    EXPECT_THAT(add_row(one), Granted());
    EXPECT_THAT(add_row(two), Granted());
}

// Advisory locks of PostgreSQL are for all schemas of a database, those of MySQL for all databases of a server.
TEST_P(FenceTest, TheSameNameInAnotherDatabaseIsAnotherFence) {
    const ProtectedPlace elsewhere(GetParam());
    elsewhere.connect()->run({.text = "CREATE TABLE t (v INTEGER)", .values = {}}, Deadline::never()).value();
    auto here = sealed(claim_with(5));
    auto there = must(FencedDatabase::seal(elsewhere.url(), claim_with(3), {}));
    must(there.begin());
    ASSERT_THAT(there.run("INSERT INTO t VALUES (1)"), Granted());
    EXPECT_THAT(add_row(here), Granted());
    auto newest = sealed(claim_with(6));
    EXPECT_THAT(there.commit(), Granted()) << "the next holder here ended a session there";
    EXPECT_THAT(add_row(newest), Granted());
}

TEST_P(FenceTest, FirstUsesAtOnceAllSucceed) {
    std::vector<std::jthread> threads;
    std::latch ready(6);
    for (int i = 0; i < 6; ++i)
        threads.emplace_back([&, i] {
            FenceClaim claim = claim_with(1);
            claim.name = lock("app/" + std::to_string(i));
            ready.arrive_and_wait();
            EXPECT_THAT(seal(claim), Granted());
        });
    threads.clear();
    EXPECT_EQ(place_("SELECT COUNT(*) FROM holdfast_fence"), "6");
}

TEST_P(FenceTest, ALossCancelsTheStatementThatRuns) {
    std::stop_source lost;
    auto database = sealed(claim_with(1), {.lost = lost.get_token()});
    must(database.begin());
    ASSERT_THAT(database.run("INSERT INTO t VALUES (1)"), Granted());
    const char* const endless =
        is(SqlDialect::postgres) ? "SELECT pg_sleep(300)"
        : is(SqlDialect::mysql)
            ? "SELECT SUM(a.id ^ b.id ^ c.id ^ d.id) FROM information_schema.collations a, "
              "information_schema.collations b, information_schema.collations c, information_schema.collations d"
            : "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";
    std::jthread losing([&] { lost.request_stop(); });
    EXPECT_THAT(database.run(endless), RefusedWith(Errc::lock_expired));
    EXPECT_THAT(database.commit(), RefusedWith(Errc::lock_expired));
    EXPECT_EQ(place_("SELECT COUNT(*) FROM t"), "0");
}

TEST_P(FenceTest, AStatementThatCommitsByItselfIsFencedByItsConnection) {
    auto earlier = sealed(claim_with(1));
    if (is(SqlDialect::sqlite)) {
        EXPECT_THAT(earlier.run_by_connection("VACUUM"), RefusedWith(Errc::store_unsafe));
        return;
    }
    EXPECT_THAT(earlier.run_by_connection("CREATE INDEX t_v ON t (v)"), Granted());
    std::atomic<bool> is_over = false;
    std::jthread running([&] {
        const char* const sleep = is(SqlDialect::postgres) ? "SELECT pg_sleep(300)" : "SELECT SLEEP(300)";
        // MariaDB answers a killed SLEEP; what counts is that it ended.
        while (earlier.run_by_connection(sleep)) continue;
        is_over = true;
    });
    auto newest = sealed(claim_with(2));
    running.join();
    EXPECT_TRUE(is_over);
    EXPECT_FALSE(earlier.run_by_connection("INSERT INTO t VALUES (1)"));
    EXPECT_THAT(newest.run_by_connection("INSERT INTO t VALUES (1)"), Granted());
    EXPECT_EQ(place_("SELECT COUNT(*) FROM t"), "1");
}

// A process that stops in a transaction must not keep the next one out for ever, where nobody may end its session.
TEST_P(FenceTest, TheServerEndsATransactionThatIsIdleForLongerThanTheLease) {
    if (is(SqlDialect::sqlite)) return;  // There is no server.
    auto database = sealed(claim_with(1), {.lease_left = [] { return 300ms; }});
    must(database.begin());
    ASSERT_THAT(database.run("INSERT INTO t VALUES (1)"), Granted());
    const sql::Command steal{.text = "UPDATE holdfast_fence SET token = token + 1", .values = {}};
    EXPECT_NO_THROW(place_(steal.text)) << "it waits until the row is free";
    EXPECT_FALSE(database.commit());
    EXPECT_EQ(place_("SELECT COUNT(*) FROM t"), "0");
}

TEST_P(FenceTest, AHoldSealsTheDatabaseAndARefusedWriteIsAnEvent) {
    const auto store = must(open_store("memory:"));
    const LockName name = lock("app");
    HoldOptions options{.ttl = lasting(200ms)};
    options.renew = false;
    auto earlier = must(hold_fenced(*store, name, place_.url(), options));
    ASSERT_THAT(add_row(earlier.database()), Granted());

    options = {};
    options.wait = 30s;
    // On a thread of its own: one that waits for a lock that it holds is refused.
    auto newest =
        must(std::async(std::launch::async, [&] { return hold_fenced(*store, name, place_.url(), options); }).get());
    // Straight at the fence: a paused process has not heard of its loss yet.
    auto paused = seal(must(claim_of(earlier.hold())), {.store = store.get()});
    EXPECT_THAT(paused, RefusedWith(Errc::fencing_mismatch));
    EXPECT_THAT(earlier.database().begin(), testing::Not(Granted()));
    EXPECT_THAT(add_row(newest.database()), Granted());

    const auto events = must(store->history({.name = name}, Deadline::never()));
    const auto fenced = std::ranges::find(events, EventKind::fenced, &AuditEvent::kind);
    ASSERT_NE(fenced, events.end());
    EXPECT_EQ(fenced->lock_id, earlier.hold().credentials().lock_id);
    EXPECT_EQ(fenced->details.at("refused_token"), std::to_string(earlier.hold().token().value));
}

TEST_P(FenceTest, ALongStatementKeepsItsLease) {
    const auto store = must(open_store("memory:"));
    auto held = must(hold_fenced(*store, lock("app"), place_.url(), {.ttl = lasting(900ms)}));
    must(held.database().begin());
    const char* const long_one = is(SqlDialect::postgres) ? "SELECT pg_sleep(2.5)"
                                 : is(SqlDialect::mysql)
                                     ? "SELECT SLEEP(2.5)"
                                     : "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000000) "
                                       "SELECT COUNT(*) FROM n";
    ASSERT_THAT(held.database().run(long_one), Granted());
    ASSERT_THAT(held.database().run("INSERT INTO t VALUES (1)"), Granted());
    EXPECT_THAT(held.database().commit(), Granted());
    EXPECT_FALSE(held.hold().loss());
}

TEST_P(FenceTest, TransactionsOfUsersAskTheFence) {
    const FenceClaim claim = claim_with(4);
    auto database = sealed(claim);
    const auto shell = place_.connect();
    const auto fence = must(guards::fence::Fence::of(*shell, host_clock(), Deadline::never()));
    must(fence->install_assert(Deadline::never()));
    must(fence->install_assert(Deadline::never()));

    const auto asserted = [&](const FenceClaim& with) {
        const std::string values = "('app', " + std::to_string(with.token.value) + ", '" + with.lock_id.text() + "')";
        const std::string text = is(SqlDialect::postgres) ? "SELECT holdfast_assert" + values
                                 : is(SqlDialect::mysql)
                                     ? "CALL holdfast_assert" + values
                                     : "INSERT INTO holdfast_assert (name, token, lock_id) VALUES " + values;
        EXPECT_TRUE(shell->run({.text = "BEGIN", .values = {}}, Deadline::never()));
        const auto answer = shell->run({.text = text, .values = {}}, Deadline::never());
        const bool passed = answer.has_value();
        if (!passed) {
            EXPECT_THAT(answer.error().message, testing::HasSubstr("E_FENCING_MISMATCH"));
        }
        (void)shell->run({.text = passed ? "COMMIT" : "ROLLBACK", .values = {}}, Deadline::never());
        return passed;
    };
    EXPECT_TRUE(asserted(claim));
    EXPECT_FALSE(asserted(claim_with(4)));
    EXPECT_FALSE(asserted(claim_with(3, claim.lock_id)));
    auto newest = sealed(claim_with(5));
    EXPECT_FALSE(asserted(claim));
}

TEST_P(FenceTest, ManyInstallItsAssertionAtOnce) {
    auto database = sealed(claim_with(4));
    std::vector<std::jthread> instances;
    std::latch begin(6);
    for (int i = 0; i < 6; ++i)
        instances.emplace_back([&] {
            const auto shell = place_.connect();
            const auto fence = must(guards::fence::Fence::of(*shell, host_clock(), Deadline::never()));
            begin.arrive_and_wait();
            for (int round = 0; round < 5; ++round)
                EXPECT_THAT(fence->install_assert(Deadline::in(host_clock(), 30s)), Granted());
        });
}

INSTANTIATE_TEST_SUITE_P(Databases, FenceTest,
                         testing::Values(SqlDialect::sqlite, SqlDialect::postgres, SqlDialect::mysql),
                         [](const auto& dialect) { return name_of(dialect.param); });

}  // namespace
}  // namespace holdfast::tests
