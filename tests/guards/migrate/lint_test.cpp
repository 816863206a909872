// Each rule finds what it is for, and not what looks like it.
#include "guards/sql/migrate/lint.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace holdfast::guards::migrate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> found(const std::string& text, Dialect dialect = Dialect::postgres) {
    const Folder folder = folder_of("m", {{"1_a.sql", text}}).value();
    std::vector<std::string> findings;
    for (const Finding& finding : lint(folder.versioned.front(), dialect))
        findings.push_back(fmt::format("{}:{}", finding.line, finding.rule));
    return findings;
}

struct LintCase {
    const char* name;
    const char* text;
    std::vector<std::string> findings;
    Dialect dialect = Dialect::postgres;
};
class LintTest : public testing::TestWithParam<LintCase> {};

TEST_P(LintTest, FindsThisAndNothingElse) {
    EXPECT_EQ(found(GetParam().text, GetParam().dialect), GetParam().findings);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, LintTest,
    testing::Values(
        LintCase{"Drop", "DROP TABLE a;\nDROP INDEX i;\nTRUNCATE b;", {"1:drop", "3:drop"}},
        LintCase{"DropOfWhatTheFileMade", "CREATE TABLE a (b int);\nDROP TABLE a;", {}},
        LintCase{"DropColumn", "ALTER TABLE a DROP COLUMN b,\n DROP CONSTRAINT c;", {"1:drop"}},
        LintCase{"Index", "CREATE INDEX i ON a (b);", {"1:index-blocks-writes"}},
        LintCase{"IndexOnNewTable", "CREATE TABLE a (b int);\nCREATE UNIQUE INDEX i ON a (b);", {}},
        LintCase{"ConcurrentIndexInTransaction", "CREATE INDEX CONCURRENTLY i ON a (b);", {"1:index-blocks-writes"}},
        LintCase{"ConcurrentIndex", "-- holdfast: no-transaction\nCREATE UNIQUE INDEX CONCURRENTLY i ON a (b);", {}},
        LintCase{"IndexOfSqlite", "CREATE INDEX i ON a (b);", {}, Dialect::sqlite},
        LintCase{"NotNull", "ALTER TABLE a ADD COLUMN b int NOT NULL;", {"1:not-null-without-default"}},
        LintCase{"NotNullWithDefault", "ALTER TABLE a ADD b int NOT NULL DEFAULT 0, ADD c int;", {}},
        LintCase{"Type",
                 "ALTER TABLE a ALTER COLUMN b TYPE bigint, ALTER c SET DATA TYPE text, ALTER d SET DEFAULT 1;",
                 {"1:type-change", "1:type-change"}},
        LintCase{"TypeOfMysql", "ALTER TABLE a MODIFY b BIGINT;", {"1:type-change"}, Dialect::mysql},
        LintCase{"Rename", "ALTER TABLE a RENAME TO b;\nALTER TABLE a RENAME b TO c;", {"1:rename", "2:rename"}},
        LintCase{"RenameOfMysql", "RENAME TABLE a TO b;", {"1:rename"}, Dialect::mysql},
        LintCase{"Constraint", "ALTER TABLE a ADD CONSTRAINT c CHECK (b > 0);", {"1:constraint-scans-table"}},
        LintCase{
            "ConstraintNotValid",
            "ALTER TABLE a ADD CONSTRAINT c CHECK (b > 0) NOT VALID;\nALTER TABLE a ADD PRIMARY KEY USING INDEX i;",
            {}},
        LintCase{"SetNotNull", "ALTER TABLE a ALTER b SET NOT NULL;", {"1:constraint-scans-table"}},
        LintCase{
            "Rewrite", "ALTER TABLE a ADD b uuid DEFAULT gen_random_uuid();\nCLUSTER a;", {"1:rewrite", "2:rewrite"}},
        LintCase{"RewriteOfMysql",
                 "ALTER TABLE a ENGINE = InnoDB;\nOPTIMIZE TABLE b;",
                 {"1:rewrite", "2:rewrite"},
                 Dialect::mysql},
        LintCase{"NoTimeout",
                 "-- holdfast: no-transaction\nREINDEX TABLE a;\nALTER TABLE a ADD b int;",
                 {"2:no-lock-timeout"}},
        LintCase{"Timeout", "-- holdfast: no-transaction\nSET lock_timeout = '3s';\nREINDEX TABLE a;", {}},
        LintCase{"TimeoutSwitchedOff", "SET lock_timeout = 0;", {"1:no-lock-timeout"}},
        LintCase{"Mixed", "ALTER TABLE a ADD b int;\nUPDATE a SET b = 1;\nDELETE FROM c;", {"2:ddl-and-data"}},
        LintCase{"DataForNewTable", "CREATE TABLE a (b int);\nINSERT INTO a VALUES (1);", {}},
        LintCase{"DataForNewTableOfMysql",
                 "CREATE TABLE a (b int);\nINSERT INTO a VALUES (1);",
                 {"2:ddl-and-data"},
                 Dialect::mysql},
        LintCase{"Transaction", "BEGIN;\nSELECT 1;\nCOMMIT;", {"1:transaction-command", "3:transaction-command"}},
        LintCase{"CompoundIsNoTransaction", "BEGIN NOT ATOMIC SELECT 1; END;", {}, Dialect::mysql},
        LintCase{"Unreadable", "SELECT 1;\nSELECT 'x;", {"2:unreadable"}},
        LintCase{"WordsInStrings", "INSERT INTO a VALUES ('DROP TABLE a; COMMIT');", {}}),
    [](const auto& test) { return test.param.name; });

TEST(LintAcceptTest, ALineBeforeTheStatementAcceptsIt) {
    EXPECT_THAT(found("SELECT 1;\n-- holdfast: accept drop nobody uses it\nDROP TABLE a;\nDROP TABLE b;"),
                ElementsAre("4:drop"));
}

TEST(LintAcceptTest, ALineInTheStatementAcceptsIt) {
    EXPECT_THAT(found("SELECT 1;\nALTER TABLE a\n  DROP b -- holdfast: accept drop\n;\nDROP TABLE b;"),
                ElementsAre("5:drop"));
}

TEST(LintAcceptTest, AnotherRuleIsNotAccepted) {
    EXPECT_THAT(found("SELECT 1;\n-- holdfast: accept rename\nDROP TABLE a;"), ElementsAre("3:drop"));
}

TEST(LintAcceptTest, TheFirstLinesAcceptForTheWholeFile) {
    EXPECT_THAT(found("-- holdfast: accept drop\n\nDROP TABLE a;\nDROP TABLE b;"), IsEmpty());
}

TEST(LintTextTest, TransactionCommandsAreKnown) {
    for (const char* text : {"BEGIN", "commit", "ROLLBACK TO a", "START TRANSACTION", "SAVEPOINT a", "end"})
        EXPECT_TRUE(is_transaction_command(text, Dialect::postgres)) << text;
    EXPECT_TRUE(is_transaction_command("SET autocommit = 0", Dialect::mysql));
    EXPECT_FALSE(is_transaction_command("CREATE TABLE begin (a int)", Dialect::postgres));
}

TEST(LintTextTest, MysqlCommitsWhatIsNotKnownToBeUndone) {
    for (const char* text :
         {"CREATE TABLE a (b int)", "ALTER TABLE a ADD c int", "GRANT ALL ON a TO b", "/*!50003 CREATE x */",
          "SET STATEMENT lock_wait_timeout = 5 FOR ALTER TABLE a ADD c int", "SET PASSWORD = PASSWORD('x')"})
        EXPECT_TRUE(commits_by_itself(text, Dialect::mysql)) << text;
    for (const char* text :
         {"INSERT INTO a VALUES (1)", "WITH x AS (SELECT 1) SELECT 1", "CREATE TEMPORARY TABLE a (b int)",
          "SET STATEMENT max_statement_time = 5 FOR DELETE FROM a", "SET @a = 1"})
        EXPECT_FALSE(commits_by_itself(text, Dialect::mysql)) << text;
    EXPECT_FALSE(commits_by_itself("CREATE TABLE a (b int)", Dialect::postgres));
}

TEST(LintTextTest, WhatOutlivesATransactionIsKnown) {
    for (const char* text : {"SET search_path = a", "SET SESSION a = 1", "reset all", "CREATE TEMP TABLE a (b int)",
                             "SELECT 1 AS a INTO TEMP b", "SELECT set_config('a', 'b', false)",
                             "DECLARE a CURSOR WITH HOLD FOR SELECT 1", "SELECT pg_try_advisory_lock(1)", "LISTEN a"})
        EXPECT_TRUE(outlives_transaction(text, Dialect::postgres)) << text;
    for (const char* text :
         {"SET LOCAL a = 1", "SET CONSTRAINTS ALL DEFERRED", "CREATE TEMPORARY TABLE a (b int) ON COMMIT DROP",
          "SELECT pg_catalog.set_config('a', 'b', TRUE)", "LOCK TABLE a", "INSERT INTO temp VALUES (1)",
          "CREATE FUNCTION f() RETURNS int SET search_path = a LANGUAGE sql AS 'SELECT 1'"})
        EXPECT_FALSE(outlives_transaction(text, Dialect::postgres)) << text;
}

}  // namespace
}  // namespace holdfast::guards::migrate
