// `holdfast migrate` on SQLite, PostgreSQL and MariaDB: what is applied, what is refused, what is shown.
#include "guards/migrate/migrate_fixture.hpp"

#include <filesystem>
#include <unistd.h>

namespace holdfast::tests {
namespace {

class MigrateTest : public MigrateFixture {};

TEST_P(MigrateTest, UpAppliesEachFileOnceAndThenNothing) {
    two_files();
    const Ended first = up({"--json"});
    ASSERT_EQ(first.status, 0) << first.err << first.out;
    EXPECT_EQ(first.json().size("/applied"), 2U);
    EXPECT_EQ(first.json().size("/pending"), 0U);
    EXPECT_EQ(first.json().text("/applied/0/version"), "1");
    EXPECT_GT(first.json().number("/applied/0/token"), 0);
    EXPECT_EQ(ask("SELECT COUNT(*) FROM users WHERE name IS NULL"), "1");

    const Ended again = up({"--json"});
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_EQ(again.json().size("/applied"), 0U);
    const Ended status = migrate("status", {"--json"});
    EXPECT_EQ(status.json().text("/migrations/1/state"), "applied") << status.out;
    EXPECT_EQ(status.json().text("/migrations/1/version"), "2");
}

TEST_P(MigrateTest, WithoutATerminalItHasToBeConfirmed) {
    two_files();
    const Ended refused = migrate("up", {"--json"});
    EXPECT_EQ(refused.status, 64);
    EXPECT_THAT(refused.out, HasSubstr("--yes"));
    EXPECT_THAT(ask("SELECT COUNT(*) FROM users"), HasSubstr("error"));
}

TEST_P(MigrateTest, OnATerminalItAsks) {
    two_files();
    const Ended denied = box_.run_on_terminal({"migrate", "up", "--database", place_.url()}, "n\n");
    EXPECT_NE(denied.status, 0);
    EXPECT_THAT(denied.err, AllOf(HasSubstr("0001_users.sql"), HasSubstr("run 2 files")));
    EXPECT_THAT(ask("SELECT COUNT(*) FROM users"), HasSubstr("error"));
    const Ended agreed = box_.run_on_terminal({"migrate", "up", "--database", place_.url()}, "y\n");
    EXPECT_EQ(agreed.status, 0) << agreed.err;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM users"), "1");
}

TEST_P(MigrateTest, DryRunShowsWhatWouldRunAndCreatesNothing) {
    two_files();
    const Ended shown = migrate("up", {"--dry-run"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_EQ(shown.out, "0001_users.sql\n0002_name.sql\n");
    for (const char* table : {"holdfast_migrations", "holdfast_identity", "holdfast_fence", "users"})
        EXPECT_THAT(ask(std::string("SELECT COUNT(*) FROM ") + table), HasSubstr("error")) << table;
}

TEST_P(MigrateTest, TwoAtOnceRunEachFileOnce) {
    file("0001_log.sql", "CREATE TABLE log (n INT);");
    for (int i = 2; i < 8; ++i)
        file(fmt::format("000{}_n.sql", i),
             fmt::format("INSERT INTO log VALUES ({0});\nCREATE TABLE t{0} (a INT);", i));
    for (int round = 0; round < scaled(1); ++round) {
        Running one = start_up({"--wait", "1m"});
        Running other = start_up({"--wait", "1m"});
        const Ended first = one.wait();
        const Ended second = other.wait();
        EXPECT_EQ(first.status, 0) << first.err;
        EXPECT_EQ(second.status, 0) << second.err;
        EXPECT_EQ(ask("SELECT COUNT(*) FROM log"), "6");
        EXPECT_EQ(ask("SELECT COUNT(DISTINCT n) FROM log"), "6");
        if (round + 1 == scaled(1)) break;
        for (int i = 2; i < 8; ++i) static_cast<void>(ask(fmt::format("DROP TABLE t{}", i)));
        static_cast<void>(ask("DROP TABLE log"));
        static_cast<void>(ask("DELETE FROM holdfast_migrations"));
    }
}

TEST_P(MigrateTest, AFileThatIsRefusedIsNamedWithItsLineAndCanBeCorrected) {
    file("0001_a.sql", "CREATE TABLE a (n INT);\n\nINSERT INTO missing VALUES (1);\nCREATE TABLE b (n INT);");
    const Ended refused = up({"--json"});
    EXPECT_EQ(refused.status, 83) << refused.err;
    EXPECT_EQ(refused.code(), "E_MIGRATION_FAILED");
    EXPECT_THAT(refused.json().text("/error/message"), AllOf(HasSubstr("0001_a.sql:3"), HasSubstr("missing")));
    const bool keeps = is(SqlDialect::mysql);
    if (!keeps) {
        EXPECT_THAT(ask("SELECT COUNT(*) FROM a"), HasSubstr("error")) << "the whole file is taken back";
    }

    file("0001_a.sql", "CREATE TABLE a (n INT);\n\nINSERT INTO a VALUES (1);\nCREATE TABLE b (n INT);");
    if (keeps) {
        EXPECT_EQ(ask("SELECT COUNT(*) FROM a"), "0");
        EXPECT_EQ(ledger_of("1"), "failed");
        EXPECT_EQ(up({"--json"}).code(), "E_MIGRATION_DIRTY");
        const Ended repaired = migrate("repair", {"--yes"});
        EXPECT_EQ(repaired.status, 0) << repaired.err;
    }
    const Ended done = up();
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM a"), "1") << "it goes on with the statement that was refused";
    EXPECT_EQ(ask("SELECT COUNT(*) FROM b"), "0");
}

TEST_P(MigrateTest, AnEditedFileIsRefusedUntilItIsAccepted) {
    two_files();
    ASSERT_EQ(up().status, 0);
    file("0001_users.sql", "CREATE TABLE users (id BIGINT PRIMARY KEY);");
    const Ended refused = up({"--json"});
    EXPECT_EQ(refused.status, 83);
    EXPECT_EQ(refused.code(), "E_MIGRATION_CHECKSUM");
    const Ended repaired = migrate("repair", {"--yes"});
    EXPECT_EQ(repaired.status, 0) << repaired.err;
    EXPECT_EQ(up().status, 0);
}

TEST_P(MigrateTest, ALateFileAndAHoleAreRefused) {
    two_files();
    file("0004_d.sql", "CREATE TABLE d (n INT);");
    ASSERT_EQ(up().status, 0);
    file("0003_c.sql", "CREATE TABLE c (n INT);");
    EXPECT_EQ(up({"--json"}).code(), "E_MIGRATION_ORDER");
    const Ended allowed = up({"--allow-out-of-order"});
    EXPECT_EQ(allowed.status, 0) << allowed.err;
    std::filesystem::remove(box_.work / "migrations" / "0002_name.sql");
    EXPECT_EQ(up({"--json"}).code(), "E_MIGRATION_ORDER");
    std::filesystem::remove(box_.work / "migrations" / "0003_c.sql");
    std::filesystem::remove(box_.work / "migrations" / "0004_d.sql");
    const Ended ahead = up();
    EXPECT_EQ(ahead.status, 0) << "an application that was rolled back";
    EXPECT_THAT(ahead.err, HasSubstr("ahead of the files"));
}

TEST_P(MigrateTest, DownTakesTheNewestFileBack) {
    two_files();
    file("0002_name.down.sql", "DROP TABLE log;\nALTER TABLE users DROP COLUMN name;");
    ASSERT_EQ(up().status, 0);
    const Ended back = migrate("down", {"--yes", "--json"});
    EXPECT_EQ(back.status, 0) << back.err;
    EXPECT_THAT(ask("SELECT COUNT(*) FROM log"), HasSubstr("error"));
    EXPECT_EQ(migrate("status", {"--json"}).json().text("/migrations/1/state"), "pending");
    EXPECT_EQ(migrate("down", {"--yes", "--json"}).code(), "E_MIGRATION_ORDER") << "0001 has no way back";
    EXPECT_EQ(up().status, 0);
}

TEST_P(MigrateTest, RepeatableFilesRunAgainWhenTheirTextChanged) {
    two_files();
    file("R__v.sql", "DROP VIEW IF EXISTS v;\nCREATE VIEW v AS SELECT 1 AS n;");
    ASSERT_EQ(up().status, 0);
    EXPECT_EQ(ask("SELECT n FROM v"), "1");
    file("R__v.sql", "DROP VIEW IF EXISTS v;\nCREATE VIEW v AS SELECT ${n} AS n;");
    EXPECT_EQ(up({"--json"}).code(), "E_MIGRATION_FAILED") << "the placeholder is not set";
    EXPECT_EQ(ask("SELECT n FROM v"), "1") << "nothing was touched";
    const Ended filled = up({"--placeholder", "n=2"});
    EXPECT_EQ(filled.status, 0) << filled.err;
    EXPECT_EQ(ask("SELECT n FROM v"), "2");
}

TEST_P(MigrateTest, TheBaselineIsNotRun) {
    two_files();
    static_cast<void>(ask("CREATE TABLE users (id INT)"));
    const Ended set = migrate("baseline", {"1", "--yes"});
    EXPECT_EQ(set.status, 0) << set.err;
    EXPECT_EQ(up().status, 0);
    EXPECT_EQ(ask("SELECT COUNT(*) FROM users"), "0") << "0001 would have added a row";
    EXPECT_EQ(migrate("baseline", {"2", "--yes", "--json"}).code(), "E_MIGRATION_ORDER");
}

TEST_P(MigrateTest, WaitReturnsWhenAnotherHasMigrated) {
    two_files();
    EXPECT_EQ(migrate("wait", {"--timeout", "0", "--json"}).status, 75);
    Running waiting = box_.start(command("wait", {"--timeout", "1m"}), environment());
    ASSERT_EQ(up().status, 0);
    const Ended ended = waiting.wait();
    EXPECT_EQ(ended.status, 0) << ended.err;
}

TEST_P(MigrateTest, WhatWasChangedByHandIsFound) {
    static_cast<void>(ask("CREATE TABLE strange (n INT)"));
    two_files();
    ASSERT_EQ(up().status, 0);
    const Ended clean = migrate("verify", {"--json"});
    EXPECT_EQ(clean.status, 0) << clean.out << clean.err;
    EXPECT_EQ(clean.json().text("/not_ours/0/name"), "strange") << clean.out;
    static_cast<void>(ask("ALTER TABLE users ADD by_hand INT"));
    static_cast<void>(ask("DROP TABLE log"));
    const Ended drifted = migrate("verify", {"--json"});
    EXPECT_EQ(drifted.status, 83);
    EXPECT_EQ(drifted.json().text("/changed/0/name"), "users") << drifted.out;
    EXPECT_EQ(drifted.json().text("/missing/0/name"), "log");
}

TEST_P(MigrateTest, SettingsOfAFileDoNotReachTheNext) {
    if (is(SqlDialect::postgres)) {
        file("0001_a.sql", "CREATE SCHEMA elsewhere_${n};\nSET search_path = elsewhere_${n};\nSET ROLE pg_monitor;");
        file("0002_b.sql", "CREATE TABLE b (n INT);");
    } else if (is(SqlDialect::mysql)) {
        file("0001_a.sql", "SET SESSION sql_mode = 'ANSI_QUOTES';\nUSE information_schema;");
        file("0002_b.sql", "CREATE TABLE b (n INT);\nINSERT INTO b SELECT LENGTH(\"ab\");");
    } else {
        file("0001_a.sql", "-- holdfast: no-transaction\nPRAGMA foreign_keys = ON;");
        file("0002_b.sql", "CREATE TABLE b (n INT);\nINSERT INTO b SELECT foreign_keys FROM pragma_foreign_keys;");
    }
    const Ended done = up({"--placeholder", "n=" + std::to_string(getpid())});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(ask("SELECT SUM(n) FROM b"), is(SqlDialect::mysql) ? "2" : is(SqlDialect::sqlite) ? "0" : "NULL");
    if (is(SqlDialect::postgres)) static_cast<void>(ask("DROP SCHEMA elsewhere_" + std::to_string(getpid())));
}

TEST_P(MigrateTest, ATransactionCommandIsRefusedBeforeAnythingRuns) {
    two_files();
    file("0003_c.sql", "CREATE TABLE c (n INT);\nCOMMIT;");
    const Ended refused = up({"--json"});
    EXPECT_EQ(refused.code(), "E_MIGRATION_FAILED");
    EXPECT_THAT(refused.json().text("/error/message"), HasSubstr("0003_c.sql:2"));
    EXPECT_THAT(ask("SELECT COUNT(*) FROM users"), HasSubstr("error"));
}

TEST_P(MigrateTest, WithoutTheLockItWarns) {
    two_files();
    const Ended done = up({"--no-lock"});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.err, HasSubstr("without the lock"));
    EXPECT_EQ(ask("SELECT COUNT(*) FROM users"), "1");
}

TEST_P(MigrateTest, WhoeverComesSecondIsToldWhoMigrates) {
    two_files();
    const Ended held =
        box_.run({"acquire", "m/second", "-s", lock_store(), "--ttl", "1m", "--holder", "somebody", "--json"});
    ASSERT_EQ(held.status, 0) << held.err;
    const Ended refused = up({"--lock", "m/second", "--json"});
    EXPECT_EQ(refused.status, 75) << refused.err;
    EXPECT_EQ(refused.code(), "E_LOCK_CONFLICT");
    EXPECT_THAT(refused.json().text("/error/message"), HasSubstr("somebody"));
    EXPECT_THAT(ask("SELECT COUNT(*) FROM users"), HasSubstr("error"));
}

TEST_P(MigrateTest, EveryCommandThatChangesTheDatabaseWantsTheLock) {
    two_files();
    file("0002_name.down.sql", "DROP TABLE log;");
    ASSERT_EQ(up().status, 0);
    const Ended held =
        box_.run({"acquire", "m/all", "-s", lock_store(), "--ttl", "1m", "--holder", "somebody", "--json"});
    ASSERT_EQ(held.status, 0) << held.err;
    file("0001_users.sql", "CREATE TABLE edited (n INT);");
    file("0003_c.sql", "CREATE TABLE c (n INT);");
    for (const Args& verb : {Args{"down"}, Args{"repair"}, Args{"baseline", "3"}}) {
        Args args{"migrate"};
        args.insert(args.end(), verb.begin(), verb.end());
        args.insert(args.end(), {"--yes", "--lock", "m/all", "--json"});
        const Ended refused = box_.run(args, environment());
        EXPECT_EQ(refused.code(), "E_LOCK_CONFLICT") << verb.front() << refused.out;
    }
    EXPECT_EQ(ask("SELECT COUNT(*) FROM log"), "0");
    EXPECT_EQ(up({"--json"}).code(), "E_MIGRATION_CHECKSUM");
}

TEST_P(MigrateTest, InsideOfARunThatHoldsTheLockItJoins) {
    two_files();
    const Ended joined = box_.run({"run", "m/joined", "-s", lock_store(), "--ttl", "1m", "--", box_.program, "migrate",
                                   "up", "--yes", "--lock", "m/joined"},
                                  environment());
    EXPECT_EQ(joined.status, 0) << joined.err;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM users"), "1");
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateTest,
                         testing::Values(SqlDialect::sqlite, SqlDialect::postgres, SqlDialect::mysql),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace holdfast::tests
