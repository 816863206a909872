// `holdfast migrate` on several databases and schemas at once: what fails stops nothing else, and is named.
#include "guards/migrate/migrate_fixture.hpp"

#include <algorithm>
#include <csignal>
#include <unistd.h>

namespace holdfast::tests {
namespace {

class MigrateMany : public MigrateFixture {
protected:
    ~MigrateMany() override {
        for (const std::string& each : made_) static_cast<void>(ask(drop(each)));
    }

    /// Schemas of PostgreSQL, databases of MySQL: with names that no other test has.
    void make_tenants(int count) {
        const std::string create = is(SqlDialect::postgres) ? "CREATE SCHEMA " : "CREATE DATABASE ";
        for (int i = 0; i < count; ++i) {
            made_.push_back(fmt::format("{}{:03}", prefix_, i));
            const std::string answer = ask(create + made_.back());
            ASSERT_EQ(answer, "");
        }
    }
    [[nodiscard]] std::string pattern() const { return prefix_ + "%"; }
    [[nodiscard]] const std::string& tenant(std::size_t which) const { return made_.at(which); }
    Ended up_all(const Args& more = {}) {
        Args args{"--schemas-like", pattern()};
        args.insert(args.end(), more.begin(), more.end());
        return up(args);
    }
    void one_file() const { file("0001_users.sql", "CREATE TABLE users (id INT PRIMARY KEY);"); }

private:
    [[nodiscard]] std::string drop(const std::string& name) const {
        return is(SqlDialect::postgres) ? "DROP SCHEMA " + name + " CASCADE" : "DROP DATABASE " + name;
    }

    std::string prefix_ = fmt::format("tenant{}x", getpid());
    std::vector<std::string> made_{};
};

TEST_P(MigrateMany, OneBadSchemaStopsNoOtherAndASecondRunDoesIt) {
    // A database of MySQL gets tables for its locks, which takes its time.
    const bool quick = is(SqlDialect::postgres);
    const int count = std::clamp(scaled(quick ? 40 : 12), 12, quick ? 200 : 60);
    make_tenants(count);
    one_file();
    const std::string& bad = tenant(7);
    ASSERT_EQ(ask("CREATE TABLE " + bad + ".users (by_hand INT)"), "");

    const Ended first = up_all({"--json", "--parallel", "2"});
    ASSERT_EQ(first.status, 83) << first.err;
    EXPECT_EQ(first.json().size("/targets"), static_cast<std::size_t>(count));
    EXPECT_EQ(first.json().number("/done"), count - 1) << first.out;
    EXPECT_EQ(first.json().number("/failed"), 1);
    EXPECT_EQ(first.json().text("/targets/7/status"), "failed");
    EXPECT_EQ(first.json().text("/targets/7/error/code"), "E_MIGRATION_FAILED");
    EXPECT_EQ(first.json().number("/targets/7/exit_status"), 83);
    EXPECT_EQ(first.json().text("/targets/6/result/applied/0/name"), "users");
    EXPECT_EQ(ask("SELECT COUNT(*) FROM " + tenant(11) + ".users"), "0");

    ASSERT_EQ(ask("DROP TABLE " + bad + ".users"), "");
    if (is(SqlDialect::mysql)) {
        ASSERT_EQ(migrate("repair", {"--yes", "--again", "--schema", bad}).status, 0);
    }
    const Ended second = up_all({"--json"});
    EXPECT_EQ(second.status, 0) << second.err << second.out;
    EXPECT_EQ(second.json().number("/done"), count);
    EXPECT_EQ(second.json().size("/targets/7/result/applied"), 1U);
    EXPECT_EQ(second.json().size("/targets/6/result/applied"), 0U) << "it was done before";
}

TEST_P(MigrateMany, TheTableNamesWhatFailedInWords) {
    make_tenants(3);
    one_file();
    ASSERT_EQ(ask("CREATE TABLE " + tenant(1) + ".users (by_hand INT)"), "");
    const Ended shown = up_all();
    EXPECT_EQ(shown.status, 83);
    EXPECT_THAT(shown.out, AllOf(HasSubstr(tenant(0) + "\tdone\tapplied 1"),
                                 HasSubstr(tenant(1) + "\tfailed\tE_MIGRATION_FAILED: "), HasSubstr("0001_users.sql:1"),
                                 HasSubstr(tenant(2) + "\tdone")));
    EXPECT_THAT(shown.err, HasSubstr("1 of 3 failed"));
    const Ended quiet = up_all({"-q"});
    EXPECT_THAT(quiet.out, testing::Not(HasSubstr(tenant(0)))) << "what is well is nothing to tell";
    EXPECT_THAT(quiet.out, HasSubstr(tenant(1)));
}

TEST_P(MigrateMany, OneSchemaIsReachedByItsName) {
    make_tenants(2);
    one_file();
    ASSERT_EQ(up({"--schema", tenant(1)}).status, 0);
    EXPECT_EQ(ask("SELECT COUNT(*) FROM " + tenant(1) + ".users"), "0");
    EXPECT_THAT(ask("SELECT COUNT(*) FROM " + tenant(0) + ".users"), HasSubstr("error"));
    const Ended all = migrate("status", {"--schemas-like", pattern(), "--json"});
    EXPECT_EQ(all.status, 0) << all.err;
    EXPECT_EQ(all.json().size("/targets/0/result/pending"), 1U) << all.out;
    EXPECT_EQ(all.json().size("/targets/1/result/pending"), 0U);
    const Ended absent = up({"--schema", tenant(0) + "_absent", "--json"});
    EXPECT_NE(absent.status, 0);
    EXPECT_THAT(absent.out, HasSubstr(tenant(0) + "_absent"));
}

TEST_P(MigrateMany, NamesThatNeedQuotesAndLongOnesAreNamesLikeOthers) {
    make_tenants(1);
    one_file();
    const bool postgres = is(SqlDialect::postgres);
    std::string longest = tenant(0);
    // PostgreSQL counts bytes, and MySQL letters.
    for (int i = 0; i < (postgres ? 15 : 46); ++i) longest += "\u8cc7";
    std::vector<std::string> quoted;
    const std::string odd = tenant(0) + " %-\"Odd";
    for (const std::string& name : {odd, longest}) {
        std::string text = name;
        if (const auto quote = text.find('"'); postgres && quote != std::string::npos) text.insert(quote, 1, '"');
        quoted.push_back(postgres ? '"' + text + '"' : '`' + text + '`');
        ASSERT_EQ(ask((postgres ? "CREATE SCHEMA " : "CREATE DATABASE ") + quoted.back()), "");
    }
    const Ended all = up_all({"--json"});
    EXPECT_EQ(all.status, 0) << all.out;
    EXPECT_EQ(all.json().number("/done"), 3) << all.out;
    EXPECT_EQ(up({"--schema", odd}).status, 0);
    for (const std::string& name : quoted) {
        EXPECT_EQ(ask("SELECT COUNT(*) FROM " + name + ".users"), "0");
        static_cast<void>(ask((postgres ? "DROP SCHEMA " : "DROP DATABASE ") + name + (postgres ? " CASCADE" : "")));
    }
}

TEST_P(MigrateMany, WhoWaitsForOneOfManyIsToldWhoHasIt) {
    make_tenants(2);
    one_file();
    ASSERT_EQ(up_all().status, 0);
    file("0002_log.sql", "CREATE TABLE log (n INT);");
    const std::string name =
        "migrate/" + ask("SELECT identity FROM " + tenant(0) + ".holdfast_identity") + "/" + tenant(0);
    const std::string store =
        is(SqlDialect::postgres) ? place_.url() : place_.url().substr(0, place_.url().rfind('/') + 1) + tenant(0);
    ASSERT_EQ(box_.run({"acquire", name, "-s", store, "--ttl", "1m", "--holder", "somebody", "--json"}).status, 0);
    const Ended held = up_all({"--json"});
    EXPECT_EQ(held.status, 83);
    EXPECT_EQ(held.json().text("/targets/0/error/code"), "E_LOCK_CONFLICT") << held.out;
    EXPECT_EQ(held.json().number("/targets/0/exit_status"), 75);
    EXPECT_EQ(held.json().text("/targets/1/status"), "done");
    const Ended skipped = up_all({"--json", "--if-held", "skip"});
    EXPECT_EQ(skipped.status, 0) << skipped.out;
    EXPECT_EQ(skipped.json().text("/targets/0/status"), "skipped");
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateMany, testing::Values(SqlDialect::postgres, SqlDialect::mysql),
                         [](const auto& test) { return name_of(test.param); });

/// Several databases, each by its URL.
class MigrateFiles : public testing::Test {
protected:
    MigrateFiles() {
        box_.write(box_.work / "migrations" / "0001_users.sql", "CREATE TABLE users (id INT PRIMARY KEY);");
    }
    Ended up(const Args& more, const cli_test::Environment& environment = {}) {
        Args args{"migrate", "up", "--yes", "--json"};
        args.insert(args.end(), more.begin(), more.end());
        return box_.run(args, environment);
    }

    cli_test::Sandbox box_;
};

TEST_F(MigrateFiles, SeveralDatabasesAreNamedByFlagsOrInOneVariable) {
    const Ended flags = up({"--database", "sqlite:a.db", "--database", "sqlite:b.db", "--database", "sqlite:a.db"});
    EXPECT_EQ(flags.status, 0) << flags.err;
    EXPECT_EQ(flags.json().size("/targets"), 2U) << "one that is named twice is one";
    EXPECT_EQ(flags.json().text("/targets/1/database"), "sqlite:b.db");
    const Ended variable = up({}, {{"HOLDFAST_DATABASE", "sqlite:a.db\nsqlite:c,d.db"}});
    EXPECT_EQ(variable.status, 0) << variable.err;
    EXPECT_EQ(variable.json().size("/targets/0/result/applied"), 0U);
    EXPECT_EQ(variable.json().size("/targets/1/result/applied"), 1U) << variable.out;
}

TEST_F(MigrateFiles, OneThatCannotBeOpenedStopsNoOther) {
    const Ended ended = up({"--database", "sqlite:absent/a.db", "--database", "sqlite:b.db"});
    EXPECT_EQ(ended.status, 83);
    EXPECT_TRUE(ended.json().has("/targets/0/error/code")) << ended.out;
    EXPECT_EQ(ended.json().text("/targets/1/status"), "done");
}

TEST_F(MigrateFiles, NobodyIsAskedForEachOfMany) {
    const Ended refused =
        box_.run({"migrate", "up", "--json", "--database", "sqlite:a.db", "--database", "sqlite:b.db"});
    EXPECT_EQ(refused.status, 64);
    EXPECT_THAT(refused.out, HasSubstr("--dry-run"));
    const Ended shown =
        box_.run({"migrate", "up", "--dry-run", "--database", "sqlite:a.db", "--database", "sqlite:b.db"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_EQ(shown.out, "sqlite:a.db\tdone\tpending 1\nsqlite:b.db\tdone\tpending 1\n");
    EXPECT_FALSE(std::filesystem::exists(box_.work / "a.db"));
}

TEST_F(MigrateFiles, WhatCannotBeMeantIsRefused) {
    const Args two{"--database", "sqlite:a.db", "--database", "sqlite:b.db"};
    const auto refuses = [&](const Args& more, const std::string& why) {
        Args args = two;
        args.insert(args.end(), more.begin(), more.end());
        const Ended refused = up(args);
        EXPECT_NE(refused.status, 0) << refused.out;
        EXPECT_THAT(refused.out, HasSubstr(why));
    };
    refuses({"--parallel", "0"}, "--parallel 0");
    refuses({"--lock", "one", "--parallel", "2"}, "leave --parallel out");
    refuses({"--schemas-like", "a%", "--schema", "a"}, "cannot both be meant");
    refuses({"--schemas-like", "a%"}, "no schemas");
    refuses({"--schema", "a"}, "no schemas");
    refuses({"--schema="}, "--schema needs a name");
    EXPECT_EQ(up({"--database", "sqlite:a.db", "--database", "sqlite:b.db", "--lock", "one"}).status, 0)
        << "one after the other";
}

TEST_F(MigrateFiles, AnEndThatIsAskedForEndsWhatRunsAndBeginsNothingElse) {
    box_.write(box_.work / "migrations" / "0002_long.sql",
               "INSERT INTO users WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 4000000000) "
               "SELECT MAX(n) FROM c;");
    Running running = box_.start({"migrate", "up", "--yes", "-v", "--json", "--parallel", "1", "--database",
                                  "sqlite:a.db", "--database", "sqlite:b.db"});
    ASSERT_TRUE(eventually([&] {
        return running.err().find("sqlite:a.db: migrations/0002_long.sql:1") != std::string::npos;
    })) << running.err();
    running.signal(SIGTERM);
    const Ended ended = running.wait();
    EXPECT_EQ(ended.status, 128 + SIGTERM) << ended.err;
    EXPECT_EQ(ended.json().text("/targets/0/status"), "failed") << ended.out;
    EXPECT_EQ(ended.json().text("/targets/1/status"), "not_started");
    EXPECT_FALSE(std::filesystem::exists(box_.work / "b.db"));
}

}  // namespace
}  // namespace holdfast::tests
