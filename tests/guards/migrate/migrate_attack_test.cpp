// `holdfast migrate` in the hands of somebody who does what no manual says: files that reach for Holdfast's own tables,
// databases by other names, users with hardly any rights, statements that wait for input.
#include "base/fd.hpp"
#include "guards/migrate/migrate_fixture.hpp"
#include "support/servers/kinds.hpp"

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::tests {
namespace {

class MigrateAttack : public MigrateFixture {
protected:
    [[nodiscard]] Args with_database(const std::string& verb, const std::string& url, const Args& more = {}) const {
        Args args{"migrate", verb, "--database", url, "--json"};
        args.insert(args.end(), more.begin(), more.end());
        return args;
    }
};

TEST_P(MigrateAttack, AFileMayNotChangeTheTablesOfHoldfast) {
    two_files();
    ASSERT_EQ(up().status, 0);
    for (const char* text :
         {"DROP TABLE holdfast_migrations;", "DELETE FROM Holdfast_Migrations WHERE version = '1';",
          "ALTER TABLE holdfast_fence RENAME TO f;", "UPDATE holdfast_identity SET identity = 'x';"}) {
        file("0003_evil.sql", std::string("INSERT INTO log VALUES (3);\n") + text);
        const Ended refused = up({"--json"});
        EXPECT_EQ(refused.code(), "E_MIGRATION_FAILED") << text;
        EXPECT_THAT(refused.out, HasSubstr("0003_evil.sql:2")) << text;
        EXPECT_EQ(ask("SELECT COUNT(*) FROM log"), "0") << text;
    }
    file("0003_evil.sql", "INSERT INTO log SELECT COUNT(*) FROM holdfast_migrations;");
    EXPECT_EQ(up().status, 0) << "it may look at them";
}

TEST_P(MigrateAttack, WhoeverMayOnlyReadCanLook) {
    // A file that may only be read is a matter of the file system.
    if (is(SqlDialect::sqlite)) return;
    two_files();
    ASSERT_EQ(up().status, 0);
    file("0003_c.sql", "CREATE TABLE c (n INT);");
    const std::string reader = fmt::format("reader{}", getpid());
    const std::string schema = ask(is(SqlDialect::postgres) ? "SELECT current_schema()" : "SELECT DATABASE()");
    if (is(SqlDialect::postgres)) {
        EXPECT_EQ(ask("CREATE ROLE " + reader + " LOGIN PASSWORD 'reads'"), "");
        EXPECT_EQ(ask("GRANT USAGE ON SCHEMA " + schema + " TO " + reader), "");
        EXPECT_EQ(ask("GRANT SELECT ON ALL TABLES IN SCHEMA " + schema + " TO " + reader), "");
    } else {
        EXPECT_EQ(ask("CREATE USER " + reader + " IDENTIFIED BY 'reads'"), "");
        EXPECT_EQ(ask("GRANT SELECT ON " + schema + ".* TO " + reader), "");
    }
    std::string url = place_.url();
    const std::string owner = fmt::format("{}:{}@", server_user_name, server_password);
    ASSERT_NE(url.find(owner), std::string::npos);
    url.replace(url.find(owner), owner.size(), reader + ":reads@");
    const Ended status = box_.run(with_database("status", url));
    EXPECT_EQ(status.status, 0) << status.out;
    EXPECT_EQ(status.json().size("/pending"), 1U);
    const Ended shown = box_.run(with_database("up", url, {"--dry-run"}));
    EXPECT_EQ(shown.status, 0) << shown.out;
    EXPECT_EQ(shown.json().text("/pending/0/name"), "c");
    EXPECT_EQ(box_.run(with_database("wait", url, {"--timeout", "0"})).status, 75);
    EXPECT_EQ(box_.run(with_database("verify", url)).status, 0);
    const Ended denied = box_.run(with_database("up", url, {"--yes"}));
    EXPECT_NE(denied.status, 0);
    EXPECT_THAT(ask("SELECT COUNT(*) FROM c"), HasSubstr("error"));
    static_cast<void>(ask(is(SqlDialect::postgres) ? "DROP OWNED BY " + reader : "DROP USER " + reader));
    if (is(SqlDialect::postgres)) static_cast<void>(ask("DROP ROLE " + reader));
}

TEST_P(MigrateAttack, ByAnotherNameItIsTheSameDatabase) {
    two_files();
    ASSERT_EQ(up().status, 0);
    file("0003_c.sql", "CREATE TABLE c (n INT);");
    std::string url = place_.url();
    std::string name = "migrate/" + ask("SELECT identity FROM holdfast_identity");
    if (is(SqlDialect::sqlite)) {
        std::filesystem::create_symlink(url.substr(url.find(':') + 1), box_.work / "link.db");
        url = "sqlite:link.db";
    } else {
        name += "/" + ask(is(SqlDialect::postgres) ? "SELECT current_schema()" : "SELECT DATABASE()");
        url.replace(url.find("127.0.0.1"), 9, "localhost");
    }
    const Ended held = box_.run({"acquire", name, "-s", lock_store(), "--ttl", "1m", "--holder", "somebody", "--json"});
    ASSERT_EQ(held.status, 0) << held.out;
    const Ended refused = box_.run(with_database("up", url, {"--yes"}));
    // A link to a SQLite file is not followed: the locks beside it would be others.
    EXPECT_EQ(refused.code(), is(SqlDialect::sqlite) ? "E_STORE_UNSAFE" : "E_LOCK_CONFLICT") << refused.out;
    EXPECT_THAT(ask("SELECT COUNT(*) FROM c"), HasSubstr("error"));
}

TEST_P(MigrateAttack, InsideOfALockThatAShellHoldsItJoinsAndGivesNothingBack) {
    two_files();
    const std::string script = "eval \"$(" + box_.program + " acquire m/shell --ttl 1m --format sh)\" && " +
                               box_.program + " migrate up --yes --lock m/shell && " + box_.program + " check m/shell";
    cli_test::Environment more = environment();
    more["HOLDFAST_STORE"] = lock_store();
    const Ended ended = box_.run_program({"/bin/sh", "-c", script}, more);
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM users"), "1");
}

TEST_P(MigrateAttack, AStatementThatWantsInputFailsAndHangsNothing) {
    file("0001_log.sql", "CREATE TABLE log (n INT);");
    ASSERT_EQ(up().status, 0);
    const std::string text = is(SqlDialect::postgres) ? "COPY log FROM STDIN;"
                             : is(SqlDialect::mysql)  ? "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE log;"
                                                      : "INSERT INTO log VALUES (readfile('/etc/passwd'));";
    file("0002_input.sql", "INSERT INTO log VALUES (1);\n" + text);
    const Ended refused = up({"--json"});
    EXPECT_NE(refused.status, 0);
    EXPECT_THAT(refused.json().text("/error/message"), HasSubstr("0002_input.sql:2")) << refused.out;
    file("0002_input.sql", "INSERT INTO log VALUES (1);");
    if (is(SqlDialect::mysql)) {
        EXPECT_EQ(migrate("repair", {"--yes", "--again"}).status, 0);
    }
    const Ended after = up();
    EXPECT_EQ(after.status, 0) << after.err;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM log"), "1");
}

TEST_P(MigrateAttack, TheLeaseIsRenewedWhileAPersonThinks) {
    // The person is the same everywhere.
    if (!is(SqlDialect::sqlite)) return;
    two_files();
    const auto answers = box_.work / "answers";
    ASSERT_EQ(mkfifo(answers.c_str(), 0600), 0);
    const base::Fd answer(open(answers.c_str(), O_RDWR | O_CLOEXEC));
    Running asking = box_.start_program(
        {"/bin/sh", "-c", "exec script -qec \"$0 migrate up --lock m/think --ttl 10s\" /dev/null <answers",
         box_.program},
        environment());
    const auto was_renewed = [&] {
        return box_.run({"history", "m/think", "-s", lock_store()}).out.find("renewed") != std::string::npos;
    };
    ASSERT_TRUE(eventually(was_renewed)) << asking.out() << asking.err();
    EXPECT_THAT(asking.out(), HasSubstr("run 2 files"));
    EXPECT_THAT(ask("SELECT COUNT(*) FROM users"), HasSubstr("error")) << "nobody has answered";
    ASSERT_EQ(write(answer.get(), "y\n", 2), 2);
    EXPECT_EQ(asking.wait().status, 0);
    EXPECT_EQ(ask("SELECT COUNT(*) FROM users"), "1");
}

TEST_P(MigrateAttack, DoctorSaysHowFenceAndMigrationsStand) {
    two_files();
    ASSERT_EQ(up().status, 0);
    file("0003_bad.sql", "CREATE TABLE c (n INT);\nINSERT INTO absent VALUES (1);");
    const Ended pending = box_.run({"doctor", "--database", place_.url(), "-s", lock_store()});
    EXPECT_THAT(pending.out, AllOf(HasSubstr("fence: refuses former holders of 1 lock"),
                                   HasSubstr("migrations: 2 applied"), HasSubstr("migrations: 1 pending")));
    if (is(SqlDialect::sqlite)) {
        EXPECT_THAT(pending.out, HasSubstr("other programs that write to this file"));
    }
    ASSERT_EQ(up().status, 83);
    const Ended after = box_.run({"doctor", "--database", place_.url(), "-s", lock_store(), "--json"});
    const bool stays = is(SqlDialect::mysql);
    EXPECT_EQ(after.out.find("stopped after 1 statement") != std::string::npos, stays) << after.out;
    if (stays) {
        EXPECT_EQ(after.status, 78);
    }
    file("0001_users.sql", "CREATE TABLE other (n INT);");
    const Ended edited = box_.run({"doctor", "--database", place_.url(), "-s", lock_store()});
    EXPECT_EQ(edited.status, 78);
    EXPECT_THAT(edited.out, HasSubstr("FAIL  migrations: "));
}

TEST_P(MigrateAttack, DoctorNamesAPartitionThatNobodyProtects) {
    // Only PostgreSQL has protected tables.
    if (!is(SqlDialect::postgres)) return;
    static_cast<void>(ask("CREATE TABLE accounts (n INT) PARTITION BY RANGE (n)"));
    const Args where{"-s", place_.url()};
    const auto run = [&](Args args) {
        args.insert(args.end(), where.begin(), where.end());
        return box_.run(args);
    };
    ASSERT_EQ(run({"fence", "protect", "--table", "accounts", "--lock", "accounts/write"}).status, 0);
    const Ended covered = run({"doctor"});
    EXPECT_THAT(covered.out, AllOf(HasSubstr("accounts by accounts/write"), HasSubstr("superuser")));
    EXPECT_THAT(covered.out, testing::Not(HasSubstr("FAIL  protected")));
    static_cast<void>(ask("CREATE TABLE later PARTITION OF accounts FOR VALUES FROM (0) TO (9)"));
    const Ended uncovered = run({"doctor"});
    EXPECT_EQ(uncovered.status, 78);
    EXPECT_THAT(uncovered.out, HasSubstr("later belongs to a protected table and is not protected"));
    ASSERT_EQ(run({"fence", "protect", "--table", "accounts", "--lock", "accounts/write"}).status, 0);
    EXPECT_THAT(run({"doctor"}).out, testing::Not(HasSubstr("FAIL  protected")));
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateAttack,
                         testing::Values(SqlDialect::sqlite, SqlDialect::postgres, SqlDialect::mysql),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace holdfast::tests
