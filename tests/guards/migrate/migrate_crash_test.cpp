// `holdfast migrate` on SQLite, PostgreSQL and MariaDB when processes are paused, ended and killed, and when other
// sessions are in the way.
#include "guards/migrate/migrate_fixture.hpp"
#include "support/process_family.hpp"

#include <chrono>
#include <csignal>
#include <random>

namespace holdfast::tests {
namespace {

class MigrateCrash : public MigrateFixture {};

/// A statement that goes on for long, or until it is cancelled.
std::string long_statement(SqlDialect dialect) {
    switch (dialect) {
        case SqlDialect::postgres: return "INSERT INTO log SELECT 1 FROM pg_sleep(50);";
        case SqlDialect::mysql: return "INSERT INTO log SELECT SLEEP(50);";
        case SqlDialect::sqlite: break;
    }
    return "INSERT INTO log WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 4000000000) "
           "SELECT "
           "MAX(n) FROM c;";
}

/// The same for a table that has got a second column.
std::string long_into_log(SqlDialect dialect) {
    std::string text = long_statement(dialect);
    return text.replace(text.find("log"), 3, "log (n)");
}

TEST_P(MigrateCrash, AStatementThatTakesLongerThanTheTtlKeepsItsLease) {
    const std::string slow = is(SqlDialect::postgres) ? "INSERT INTO log SELECT 1 FROM pg_sleep(4);"
                             : is(SqlDialect::mysql)  ? "INSERT INTO log SELECT 1 FROM (SELECT SLEEP(4)) AS nap;"
                                                      : "INSERT INTO log WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL "
                                                        "SELECT n + 1 FROM c WHERE n < 9000000) SELECT MAX(n) FROM c;";
    file("0001_log.sql", "CREATE TABLE log (n INT);");
    // Also creates the store, which takes its time.
    ASSERT_EQ(up().status, 0);
    file("0002_slow.sql", slow);
    const Ended done = up({"--ttl", "3s"});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM log"), "1");
}

TEST_P(MigrateCrash, AnEndThatIsAskedForCancelsTheStatementAndFreesTheLock) {
    file("0001_log.sql", "CREATE TABLE log (n INT);");
    ASSERT_EQ(up().status, 0);
    file("0002_long.sql", "UPDATE log SET n = n;\n" + long_statement(GetParam()));
    Running running = start_up({"-v"});
    ASSERT_TRUE(eventually([&] { return running.err().find("0002_long.sql:2") != std::string::npos; }))
        << running.err();
    running.signal(SIGTERM);
    const Ended ended = running.wait();
    EXPECT_NE(ended.status, 0);
    EXPECT_THAT(ended.err, HasSubstr("0002_long.sql:2")) << "the statement is named";
    EXPECT_EQ(ask("SELECT COUNT(*) FROM log"), "0");
    file("0002_long.sql", "UPDATE log SET n = n;\nINSERT INTO log VALUES (2);");
    if (is(SqlDialect::mysql)) {
        EXPECT_EQ(migrate("repair", {"--yes"}).status, 0);
    }
    const Ended after = up();
    EXPECT_EQ(after.status, 0) << "the lock is free at once: " << after.err;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM log"), "1");
}

TEST_P(MigrateCrash, APausedHolderThatGoesOnWritesNothing) {
    // A process that is stopped in a transaction keeps the file.
    if (is(SqlDialect::sqlite)) return;
    file("0001_log.sql", "CREATE TABLE log (n INT);");
    ASSERT_EQ(up().status, 0);
    const std::string nap = is(SqlDialect::postgres) ? "SELECT pg_sleep(2);" : "DO SLEEP(2);";
    file("0002_slow.sql", "INSERT INTO log VALUES (1);\n" + nap + "\nINSERT INTO log VALUES (2);");
    Running paused = start_up({"-v", "--ttl", "1s"});
    ASSERT_TRUE(eventually([&] { return paused.err().find("0002_slow.sql:2") != std::string::npos; })) << paused.err();
    // All three, so that nobody of them can end the others.
    const auto family = family_of(paused.pid());
    signal_all(family, SIGSTOP);
    const Ended successor = up({"--wait", "1m", "--ttl", "10s"});
    signal_all(family, SIGCONT);
    const Ended first = paused.wait();
    EXPECT_EQ(successor.status, 0) << successor.err;
    EXPECT_NE(first.status, 0) << first.err;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM log"), "2") << "each row once: " << first.err;
    EXPECT_EQ(ask("SELECT COUNT(DISTINCT n) FROM log"), "2");
    EXPECT_EQ(ledger_of("2"), "applied");
}

/// Ten files, of two kinds of statements each.
TEST_P(MigrateCrash, KilledAtAnyPointItGoesOnAndNothingRunsTwice) {
    file("0001_log.sql", "CREATE TABLE log (n INT);");
    ASSERT_EQ(up().status, 0);
    for (int i = 2; i < 12; ++i)
        file(fmt::format("{:04}_n.sql", i),
             fmt::format("CREATE TABLE t{0} (a INT);\nINSERT INTO log VALUES ({0});\nALTER TABLE t{0} ADD b INT;", i));
    std::mt19937_64 random(seed_of("migrate kill"));
    std::uniform_int_distribution<int> delay(20, 250);
    for (int round = 0; round < scaled(2); ++round) {
        Running victim = start_up({"--ttl", "1s", "--wait", "30s"});
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{delay(random)};
        while (std::chrono::steady_clock::now() < until) cli_test::moment();
        signal_all(family_of(victim.pid()), SIGKILL);
        static_cast<void>(victim.wait());
        const Ended status = migrate("status", {"--json"});
        ASSERT_EQ(status.status, 0) << status.err;
        // What is said to be applied was carried out.
        for (std::size_t i = 1; i < status.json().size("/migrations"); ++i) {
            const std::string at = "/migrations/" + std::to_string(i);
            if (status.json().text(at + "/state") == "applied") {
                EXPECT_EQ(ask("SELECT COUNT(*) FROM log WHERE n = " + status.json().text(at + "/version")), "1");
            }
        }
    }
    const Ended done = up({"--wait", "30s"});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM log"), "10");
    EXPECT_EQ(ask("SELECT COUNT(DISTINCT n) FROM log"), "10");
    for (int i = 2; i < 12; ++i) EXPECT_EQ(ask(fmt::format("SELECT COUNT(b) FROM t{}", i)), "0");
}

// Its last act would have been to note how the schema looks.
TEST_P(MigrateCrash, WhatAKilledRunChangedIsNoDriftAndWhatWasChangedByHandStaysOne) {
    file("0001_log.sql", "CREATE TABLE log (n INT);\nCREATE TABLE other (n INT);\nCREATE TABLE gone (n INT);");
    ASSERT_EQ(up().status, 0);
    ASSERT_EQ(ask("ALTER TABLE other ADD by_hand INT"), "");
    file("0002_more.sql", "ALTER TABLE log ADD m INT;\nDROP TABLE gone;");
    file("0003_long.sql", "UPDATE log SET n = n;\n" + long_into_log(GetParam()));
    Running victim = start_up({"-v", "--ttl", "1s"});
    ASSERT_TRUE(eventually([&] { return victim.err().find("0003_long.sql:2") != std::string::npos; })) << victim.err();
    signal_all(family_of(victim.pid()), SIGKILL);
    static_cast<void>(victim.wait());
    const auto expect_other_alone = [&] {
        const Ended verified = migrate("verify", {"--json"});
        EXPECT_EQ(verified.status, 83) << verified.err;
        EXPECT_EQ(verified.json().size("/changed"), 1U) << verified.out;
        EXPECT_EQ(verified.json().text("/changed/0/name"), "other") << verified.out;
        EXPECT_EQ(verified.json().size("/missing"), 0U) << verified.out;
    };
    expect_other_alone();
    file("0003_long.sql", "CREATE TABLE c (n INT);");
    if (is(SqlDialect::mysql)) {
        ASSERT_EQ(migrate("repair", {"--yes", "--again", "--wait", "30s"}).status, 0);
    }
    const Ended done = up({"--wait", "30s"});
    ASSERT_EQ(done.status, 0) << done.err;
    expect_other_alone();
}

TEST_P(MigrateCrash, AFileWhoseRowIsRefusedIsTakenBack) {
    // Schema changes of MySQL cannot be taken back.
    if (is(SqlDialect::mysql)) return;
    file("0001_log.sql", "CREATE TABLE log (n INT);");
    ASSERT_EQ(up().status, 0);
    ASSERT_EQ(ask(is(SqlDialect::postgres)
                      ? "ALTER TABLE holdfast_migrations ADD CONSTRAINT no CHECK (version <> '2')"
                      : "CREATE TRIGGER no BEFORE INSERT ON holdfast_migrations WHEN new.version = '2' BEGIN SELECT "
                        "RAISE(ABORT, 'no'); END"),
              "");
    file("0002_b.sql", "INSERT INTO log VALUES (2);\nCREATE TABLE b (n INT);");
    EXPECT_NE(up().status, 0);
    EXPECT_EQ(ask("SELECT COUNT(*) FROM log"), "0");
    EXPECT_THAT(ask("SELECT COUNT(*) FROM b"), HasSubstr("error"));
}

TEST_P(MigrateCrash, AReaderInTheWayIsNamedAndStopsNobodyElse) {
    // SQLite has no locks of tables.
    if (is(SqlDialect::sqlite)) return;
    file("0001_log.sql", "CREATE TABLE log (n INT);\nCREATE TABLE aside (n INT);");
    ASSERT_EQ(up().status, 0);
    const auto reader = place_.connect();
    for (const char* text : {"START TRANSACTION", "SELECT COUNT(*) FROM aside", "SELECT COUNT(*) FROM log"})
        ASSERT_TRUE(reader->run({.text = text, .values = {}}, Deadline::never()));
    // The check names its column by schema and table.
    const std::string column = is(SqlDialect::postgres) ? ask("SELECT current_schema()") + ".log.n" : "n";
    file("0002_alter.sql", "ALTER TABLE log ADD m INT, ADD CHECK (" + column + " > 0);");
    Running blocked = start_up();
    ASSERT_TRUE(eventually([&] { return blocked.err().find("in the way") != std::string::npos; })) << blocked.err();
    EXPECT_THAT(blocked.err(), HasSubstr(is(SqlDialect::postgres) ? "process " : "connection "));
    EXPECT_EQ(ask("SELECT COUNT(*) FROM log"), "0") << "others go on";
    ASSERT_TRUE(reader->run({.text = "COMMIT", .values = {}}, Deadline::never()));
    const Ended ended = blocked.wait();
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ask("SELECT COUNT(m) FROM log"), "0");
}

TEST_P(MigrateCrash, AnIndexThatWasBegunAndNotFinishedIsBuiltAgain) {
    // Only PostgreSQL builds indexes concurrently.
    if (!is(SqlDialect::postgres)) return;
    file("0001_log.sql", "CREATE TABLE log (n INT);\nINSERT INTO log VALUES (1), (1);");
    ASSERT_EQ(up().status, 0);
    EXPECT_THAT(ask("CREATE UNIQUE INDEX CONCURRENTLY log_n ON log (n)"), HasSubstr("error"))
        << "and leaves an invalid one";
    EXPECT_EQ(ask("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('log_n')"), "f");
    static_cast<void>(ask("DELETE FROM log"));
    file("0002_index.sql",
         "-- holdfast: no-transaction\nCREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS log_n ON log (n);");
    const Ended built = up();
    EXPECT_EQ(built.status, 0) << built.err;
    EXPECT_EQ(ask("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('log_n')"), "t");
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateCrash,
                         testing::Values(SqlDialect::sqlite, SqlDialect::postgres, SqlDialect::mysql),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace holdfast::tests
