// `holdfast data sync` on SQLite, PostgreSQL and MariaDB: what becomes of rows, and what is refused.
#include "guards/data/data_fixture.hpp"

namespace holdfast::tests {
namespace {

class DataSyncTest : public DataFixture {
protected:
    /// What was counted for the table at `place` of the report.
    static std::string counts_of(const Ended& ended, int place = 0) {
        const auto json = ended.json();
        std::string text;
        for (const char* field : {"rows", "inserted", "updated", "deleted", "unchanged"})
            text +=
                fmt::format("{}{}", text.empty() ? "" : " ", json.number(fmt::format("/tables/{}/{}", place, field)));
        return text;
    }
};

TEST_P(DataSyncTest, UpsertAddsAndChangesAndLeavesTheRest) {
    create_t();
    configure_t("upsert");
    file("t/a.csv", "id,v\n2,TWO\n3,three\n4,\n");
    const Ended shown = sync({"--dry-run", "--json"});
    ASSERT_EQ(shown.status, 0) << shown.err;
    EXPECT_EQ(counts_of(shown), "3 1 1 0 1");
    EXPECT_TRUE(shown.json().yes("/dry_run"));
    EXPECT_EQ(rows_of_t(), "1=one 2=two 3=three");
    for (const char* table : {"holdfast_identity", "holdfast_fence"})
        EXPECT_THAT(ask(std::string("SELECT COUNT(*) FROM ") + table), HasSubstr("error")) << table;

    const Ended done = sync();
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(counts_of(done), "3 1 1 0 1");
    EXPECT_EQ(done.json().text("/tables/0/name"), "t");
    EXPECT_EQ(done.json().text("/tables/0/strategy"), "upsert");
    EXPECT_FALSE(done.json().yes("/dry_run"));
    EXPECT_EQ(rows_of_t(), "1=one 2=TWO 3=three 4=NULL");
    EXPECT_EQ(counts_of(sync()), "3 0 0 0 3") << "once more changes nothing";
}

TEST_P(DataSyncTest, MirrorAlsoDeletesWhatLeftTheFiles) {
    create_t();
    configure_t("mirror");
    file("t/a.yaml", "- id: 2\n  v: zwei\n");
    file("t/b.csv", "v,id\nfive,5\n");
    EXPECT_EQ(counts_of(sync({"--dry-run", "--json"})), "2 1 1 2 0");
    const Ended done = sync();
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(counts_of(done), "2 1 1 2 0");
    EXPECT_EQ(rows_of_t(), "2=zwei 5=five");
    file("t/a.yaml", "[]");
    file("t/b.csv", "v,id\n");
    EXPECT_EQ(counts_of(sync()), "0 0 0 2 0") << "files without rows are a table without rows";
    EXPECT_EQ(rows_of_t(), "");
}

TEST_P(DataSyncTest, InsertMissingChangesNothingThatIsThere) {
    create_t();
    configure_t("insert_missing");
    file("t/a.csv", "id,v\n2,TWO\n4,four\n");
    EXPECT_EQ(counts_of(sync({"--dry-run", "--json"})), "2 1 0 0 1");
    const Ended done = sync();
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(counts_of(done), "2 1 0 0 1");
    EXPECT_EQ(rows_of_t(), "1=one 2=two 3=three 4=four");
}

TEST_P(DataSyncTest, TruncateReplacesAll) {
    create_t();
    configure_t("truncate");
    file("t/a.csv", "id,v\n1,uno\n9,\"\"\n");
    EXPECT_EQ(counts_of(sync({"--dry-run", "--json"})), "2 2 0 3 0");
    EXPECT_EQ(rows_of_t(), "1=one 2=two 3=three");
    const Ended done = sync();
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(counts_of(done), "2 2 0 3 0");
    EXPECT_EQ(rows_of_t(), "1=uno 9=");
}

TEST_P(DataSyncTest, ADuplicateInATruncatedTableTakesEverythingBack) {
    create_t();
    configure_t("truncate");
    file("t/a.csv", "id,v\n7,x\n8,y\n7,z\n");
    const Ended refused = sync();
    EXPECT_EQ(refused.status, 65) << refused.err;
    EXPECT_EQ(refused.code(), "E_DATA_INVALID");
    EXPECT_THAT(refused.json().text("/error/message"), HasSubstr("t/a.csv:4"));
    EXPECT_EQ(rows_of_t(), "1=one 2=two 3=three");
}

TEST_P(DataSyncTest, AKeyThatIsThereTwiceIsNamedWithBothLines) {
    create_t();
    configure_t("upsert");
    file("t/a.csv", "id,v\n7,\"x\ny\"\n8,y\n");
    file("t/b.csv", "id,v\n9,x\n7,z\n");
    const Ended refused = sync();
    EXPECT_EQ(refused.status, 65) << refused.err;
    EXPECT_THAT(refused.json().text("/error/message"), AllOf(HasSubstr("t/b.csv:3"), HasSubstr("t/a.csv:2")));
    EXPECT_EQ(sync({"--dry-run", "--json"}).status, 65);
    EXPECT_EQ(rows_of_t(), "1=one 2=two 3=three");
}

TEST_P(DataSyncTest, WhatTheTypeRefusesIsNamedWithItsLine) {
    // SQLite stores any text in any column.
    if (is(SqlDialect::sqlite)) return;
    create_t();
    for (const char* strategy : {"upsert", "truncate"}) {
        configure_t(strategy);
        file("t/a.csv", "id,v\n5,x\n6,\"\n\"\nseven,y\n");
        const Ended refused = sync();
        EXPECT_EQ(refused.status, 65) << refused.err;
        EXPECT_THAT(refused.json().text("/error/message"), HasSubstr("t/a.csv:5")) << strategy;
        EXPECT_EQ(rows_of_t(), "1=one 2=two 3=three");
    }
}

TEST_P(DataSyncTest, FilesThatDoNotFitAreRefusedBeforeAnythingIsTouched) {
    create_t();
    configure_t("upsert");
    const std::vector<std::pair<std::string, std::string>> bad{
        {"id,v,wrong\n1,2,3\n", "t/a.csv:1: the table t has no column \"wrong\""},
        {"v\nx\n", "t/a.csv:1: the column \"id\" is missing, which is the key"},
        {"id,v\n1\n", "t/a.csv:2: the row has 1 field"},
        {"id,v\n1,\"x\n", "t/a.csv:2: a field begins with a quote"},
        {std::string("id,v\n1,\0\n", 9), "t/a.csv:2: a NUL character"},
        {"id,v\n1,\xff\n", "t/a.csv:2: the text is not UTF-8"},
    };
    for (const auto& [text, why] : bad) {
        file("t/a.csv", text);
        const Ended refused = sync();
        EXPECT_EQ(refused.status, 65) << why << refused.err;
        EXPECT_EQ(refused.code(), "E_DATA_INVALID");
        EXPECT_THAT(refused.json().text("/error/message"), HasSubstr(why));
    }
    EXPECT_EQ(rows_of_t(), "1=one 2=two 3=three");
    for (const char* table : {"holdfast_identity", "holdfast_fence"})
        EXPECT_THAT(ask(std::string("SELECT COUNT(*) FROM ") + table), HasSubstr("error")) << table;
    file("t/a.csv", "id,v\n,x\n");
    EXPECT_THAT(sync().json().text("/error/message"), HasSubstr("t/a.csv:2: the key \"id\" is NULL"));
}

TEST_P(DataSyncTest, AStrategyThatDoesNotFitItsTableIsRefused) {
    create_t();
    file("t/a.csv", "id,v\n1,x\n");
    file("none/a.csv", "id\n1\n");
    file("holdfast_fence/a.csv", "id\n1\n");
    const auto refusal = [&](const std::string& text) {
        configure(text);
        const Ended refused = sync();
        EXPECT_EQ(refused.status, 78) << refused.out;
        return refused.json().text("/error/message");
    };
    const std::string t = "[[data.table]]\nname = \"t\"\nstrategy = \"mirror\"\n";
    EXPECT_THAT(refusal(t + "key = \"v\"\n"), HasSubstr("the key (v) of t is no primary key and no unique index"));
    EXPECT_THAT(refusal(t + "key = \"w\"\n"), HasSubstr("no column \"w\""));
    EXPECT_THAT(refusal("[[data.table]]\nname = \"none\"\nstrategy = \"mirror\"\n"), HasSubstr("has no table none"));
    EXPECT_THAT(refusal("[[data.table]]\nname = \"holdfast_fence\"\nstrategy = \"truncate\"\n"),
                HasSubstr("a table of Holdfast's own"));
    EXPECT_THAT(refusal("[[data.table]]\nname = \"t\"\nstrategy = \"merge\"\n"), HasSubstr("holdfast.toml:1"));
    run("CREATE VIEW w AS SELECT * FROM t");
    file("w/a.csv", "id\n1\n");
    EXPECT_THAT(refusal("[[data.table]]\nname = \"w\"\nstrategy = \"upsert\"\n"), HasSubstr("w is"));
    run("DROP VIEW w");
    EXPECT_THAT(refusal("ttl = \"30s\"\n"), HasSubstr("lists no table"));
    run("CREATE TABLE u (id INT)");
    file("u/a.csv", "id\n1\n");
    EXPECT_THAT(refusal("[[data.table]]\nname = \"u\"\nstrategy = \"upsert\"\n"), HasSubstr("has no primary key"));
}

TEST_P(DataSyncTest, AnyUniqueIndexCanBeTheKey) {
    run("CREATE TABLE t (id INT NOT NULL, v VARCHAR(20) NOT NULL, n INT, UNIQUE (v, id))");
    run("INSERT INTO t VALUES (1, 'a', 1), (1, 'b', 2)");
    configure("[[data.table]]\nname = \"t\"\nstrategy = \"mirror\"\nkey = [\"id\", \"v\"]\n");
    file("t/a.csv", "id,v,n\n1,b,3\n2,b,4\n");
    const Ended done = sync();
    ASSERT_EQ(done.status, 0) << done.err << done.out;
    EXPECT_EQ(counts_of(done), "2 1 1 1 0");
    EXPECT_EQ(ask("SELECT SUM(n) FROM t"), "7");
}

/// A country that gets another key, and a user who moves there.
TEST_P(DataSyncTest, TablesThatReferToEachOtherAreWrittenInTheirOrder) {
    run("CREATE TABLE countries (code VARCHAR(2) NOT NULL PRIMARY KEY, name VARCHAR(20))");
    run("CREATE TABLE users (id INT NOT NULL PRIMARY KEY, country VARCHAR(2) NOT NULL, boss INT, FOREIGN KEY (country) "
        "REFERENCES countries (code), FOREIGN KEY (boss) REFERENCES users (id))");
    run("INSERT INTO countries VALUES ('UK', 'Britain'), ('XX', 'Nowhere')");
    run("INSERT INTO users VALUES (1, 'UK', NULL), (2, 'XX', 1)");
    configure(
        "[[data.table]]\nname = \"users\"\nstrategy = \"mirror\"\n"
        "[[data.table]]\nname = \"countries\"\nstrategy = \"mirror\"\n");
    file("users/a.csv", "id,country,boss\n1,GB,\n3,GB,1\n4,GB,3\n");
    file("countries/a.csv", "code,name\nGB,Britain\n");
    const Ended done = sync();
    ASSERT_EQ(done.status, 0) << done.err << done.out;
    EXPECT_EQ(done.json().text("/tables/0/name"), "users") << "in the order of the configuration";
    EXPECT_EQ(counts_of(done, 0), "3 2 1 1 0");
    EXPECT_EQ(counts_of(done, 1), "1 1 0 2 0");

    file("users/a.csv", "id,country,boss\n1,FR,\n");
    const Ended refused = sync();
    EXPECT_EQ(refused.status, 65) << refused.out;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM users"), "3");
    // MySQL checks row by row, so nobody may have a boss any more.
    if (is(SqlDialect::mysql)) run("UPDATE users SET boss = NULL");

    configure(
        "[[data.table]]\nname = \"users\"\nstrategy = \"truncate\"\n"
        "[[data.table]]\nname = \"countries\"\nstrategy = \"truncate\"\n");
    file("users/a.csv", "id,country,boss\n1,FR,\n2,FR,1\n");
    file("countries/a.csv", "code,name\nFR,France\n");
    const Ended replaced = sync();
    ASSERT_EQ(replaced.status, 0) << replaced.err << replaced.out;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM users WHERE country = 'FR'"), "2");
}

TEST_P(DataSyncTest, TruncateTakesNoRowsOfOtherTablesWithIt) {
    create_t();
    run("CREATE TABLE child (id INT NOT NULL PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)");
    run("INSERT INTO child VALUES (1, 1)");
    configure_t("truncate");
    file("t/a.csv", "id,v\n1,x\n");
    const Ended refused = sync();
    EXPECT_EQ(refused.status, 78) << refused.out;
    EXPECT_THAT(refused.json().text("/error/message"), AllOf(HasSubstr("child"), HasSubstr("use mirror")));
    configure_t("mirror");
    EXPECT_EQ(sync().status, 0);
    EXPECT_EQ(ask("SELECT COUNT(*) FROM child"), "1");
}

TEST_P(DataSyncTest, TheSecondIsToldWhoHoldsTheLock) {
    create_t();
    configure_t("upsert");
    file("t/a.csv", "id,v\n1,x\n");
    const std::string store = place_.url() + (is(SqlDialect::sqlite) ? "-locks" : "");
    ASSERT_EQ(box_.run({"acquire", "d/x", "-s", store, "--ttl", "1m", "--holder", "somebody"}).status, 0);
    const Ended refused = sync({"--lock", "d/x", "--json"});
    EXPECT_EQ(refused.status, 75) << refused.err;
    EXPECT_THAT(refused.json().text("/error/message"), HasSubstr("somebody"));
    EXPECT_EQ(rows_of_t(), "1=one 2=two 3=three");
    const Ended free = sync({"--no-lock"});
    EXPECT_EQ(free.status, 0) << free.err;
    EXPECT_THAT(free.err, HasSubstr("without the lock"));
    EXPECT_EQ(rows_of_t(), "1=x 2=two 3=three");
}

TEST_P(DataSyncTest, AMissingDatabaseIsNotMade) {
    if (!is(SqlDialect::sqlite)) return;
    configure_t("upsert");
    file("t/a.csv", "id,v\n1,x\n");
    for (const Args& args : {Args{"--json"}, Args{"--json", "--dry-run"}}) {
        const Ended refused = box_.run(command(args), {{"HOLDFAST_DATABASE", "sqlite:none.db"}});
        EXPECT_EQ(refused.status, 78) << refused.out;
        EXPECT_FALSE(std::filesystem::exists(box_.work / "none.db"));
    }
}

INSTANTIATE_TEST_SUITE_P(Databases, DataSyncTest, all_dialects(), [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace holdfast::tests
