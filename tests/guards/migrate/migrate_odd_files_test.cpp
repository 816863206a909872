// `holdfast migrate` with files as editors, dumps and copying leave them: no file is taken for applied of which the
// database has seen less than a reader of it.
#include "guards/migrate/migrate_fixture.hpp"

#include <filesystem>
#include <sys/stat.h>

namespace holdfast::tests {
namespace {

class MigrateOddFiles : public MigrateFixture {
protected:
    /// `up` ends with this in its message, and has done nothing.
    void expect_refused(const std::string& words) {
        const Ended refused = up({"--json"});
        EXPECT_EQ(refused.code(), "E_MIGRATION_FAILED") << refused.out << refused.err;
        EXPECT_THAT(refused.out, HasSubstr(words));
        EXPECT_THAT(ask("SELECT COUNT(*) FROM users"), HasSubstr("error"));
        EXPECT_THAT(ask("SELECT COUNT(*) FROM c"), HasSubstr("error"));
    }
    [[nodiscard]] std::filesystem::path path_of(const std::string& name) const {
        return box_.work / "migrations" / name;
    }
};

TEST_P(MigrateOddFiles, WindowsLineEndsAndAByteOrderMarkAreNothingSpecial) {
    file("0001_users.sql",
         "\xef\xbb\xbf-- users\r\nCREATE TABLE users (id INT PRIMARY KEY);\r\n-- one\r\nINSERT INTO users VALUES "
         "(1);\r\n");
    const Ended done = up();
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM users"), "1");
}

// To some databases all of such a file is one comment.
TEST_P(MigrateOddFiles, ALineThatEndsInACarriageReturnAloneIsRefused) {
    two_files();
    for (const char* end : {"\r", "\n"}) {
        file("0003_c.sql", std::string("-- makes c\rCREATE TABLE c (n INT);") + end);
        expect_refused("0003_c.sql:1");
    }
}

TEST_P(MigrateOddFiles, AFileWithoutAStatementIsRefused) {
    two_files();
    file("0003_c.sql", "-- c\n");
    expect_refused("0003_c.sql");
    file("0003_c.sql", "");
    expect_refused("0003_c.sql");
}

TEST_P(MigrateOddFiles, AnEndingInUpperCaseIsNotPassedOver) {
    two_files();
    file("0003_C.SQL", "CREATE TABLE c (n INT);");
    expect_refused("0003_C.SQL");
}

TEST_P(MigrateOddFiles, WhatCannotBeReadAsAFileIsRefused) {
    two_files();
    std::filesystem::create_directory(path_of("0003_c.sql"));
    expect_refused("0003_c.sql");
    std::filesystem::remove(path_of("0003_c.sql"));
    ASSERT_EQ(mkfifo(path_of("0003_c.sql").c_str(), 0600), 0);
    expect_refused("0003_c.sql");
    std::filesystem::remove(path_of("0003_c.sql"));
    std::filesystem::create_symlink("absent.sql", path_of("0003_c.sql"));
    expect_refused("0003_c.sql");
}

// A statement that is done is not done again when its file goes on, although its first word is that of a setting.
TEST_P(MigrateOddFiles, AStatementWithASettingOfItsOwnRunsOnce) {
    // Only MariaDB has such statements.
    if (!is(SqlDialect::mysql)) return;
    file(
        "0001_log.sql",
        "CREATE TABLE log (n INT);\nSET STATEMENT max_statement_time = 60 FOR INSERT INTO log VALUES (2);\nINSERT INTO "
        "missing VALUES (1);");
    ASSERT_EQ(up({"--json"}).code(), "E_MIGRATION_FAILED");
    file(
        "0001_log.sql",
        "CREATE TABLE log (n INT);\nSET STATEMENT max_statement_time = 60 FOR INSERT INTO log VALUES (2);\nINSERT INTO "
        "log VALUES (3);\nSET STATEMENT lock_wait_timeout = 5 FOR ALTER TABLE log ADD m INT;");
    ASSERT_EQ(migrate("repair", {"--yes"}).status, 0);
    const Ended done = up();
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(ask("SELECT COUNT(*) FROM log WHERE n = 2"), "1");
    EXPECT_EQ(ask("SELECT COUNT(m) FROM log"), "0");
}

TEST_P(MigrateOddFiles, AFileThatDropsEverythingIsAnError) {
    if (is(SqlDialect::sqlite)) return;
    two_files();
    ASSERT_EQ(up().status, 0);
    const std::string name = ask(is(SqlDialect::postgres) ? "SELECT current_schema()" : "SELECT DATABASE()");
    const std::string kind = is(SqlDialect::postgres) ? "SCHEMA " : "DATABASE ";
    file("0003_anew.sql",
         "DROP " + kind + name + (is(SqlDialect::postgres) ? " CASCADE" : "") + ";\nCREATE " + kind + name + ";\n");
    const Ended refused = up({"--json"});
    EXPECT_NE(refused.status, 0) << refused.out;
    EXPECT_THAT(refused.out, HasSubstr("exist")) << "what is missing is named";
    if (is(SqlDialect::postgres)) {
        EXPECT_EQ(ask("SELECT COUNT(*) FROM users"), "1") << "all of it is taken back";
    }
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateOddFiles,
                         testing::Values(SqlDialect::sqlite, SqlDialect::postgres, SqlDialect::mysql),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace holdfast::tests
