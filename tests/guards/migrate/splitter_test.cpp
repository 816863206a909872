// Scripts are cut where the database's own client would cut them. Each case lists the statements that must come out;
// for SQLite its own sqlite3_complete() is asked, too.
#include "guards/sql/migrate/splitter.hpp"

#include <gmock/gmock.h>
#include <sqlite3.h>

namespace holdfast::guards::migrate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> texts_of(std::string_view script, Dialect dialect) {
    const auto statements = split(script, dialect);
    if (!statements) return {"line " + std::to_string(statements.error().line) + ": " + statements.error().message};
    std::vector<std::string> texts;
    for (const Statement& statement : *statements) texts.push_back(statement.text);
    return texts;
}

std::vector<std::size_t> lines_of(std::string_view script, Dialect dialect) {
    std::vector<std::size_t> lines;
    const auto statements = split(script, dialect);
    for (const Statement& statement : statements.value()) lines.push_back(statement.line);
    return lines;
}

class EachDialect : public testing::TestWithParam<Dialect> {};

TEST_P(EachDialect, CutsAtSemicolonsAndDropsWhatIsEmpty) {
    EXPECT_THAT(texts_of("SELECT 1; ;\n;SELECT 2", GetParam()), ElementsAre("SELECT 1", "SELECT 2"));
    EXPECT_THAT(texts_of("", GetParam()), IsEmpty());
    EXPECT_THAT(texts_of(" -- nothing\n/* at all; */ ", GetParam()), IsEmpty());
}

TEST_P(EachDialect, SemicolonsInStringsAndCommentsCutNothing) {
    EXPECT_THAT(texts_of("SELECT ';', 'it''s;' -- no; \n FROM t /* ; */ ; SELECT \"a;b\";", GetParam()),
                ElementsAre("SELECT ';', 'it''s;' -- no; \n FROM t", "SELECT \"a;b\""));
}

TEST_P(EachDialect, KeepsTheLineOfEachStatement) {
    EXPECT_THAT(lines_of("-- a comment\n\nSELECT 1;\n/* two\nlines */ SELECT\n 2;\r\nSELECT 3", GetParam()),
                ElementsAre(3, 5, 7));
}

TEST_P(EachDialect, AByteOrderMarkIsNoPartOfAStatement) {
    EXPECT_THAT(texts_of("\xef\xbb\xbfSELECT 1;", GetParam()), ElementsAre("SELECT 1"));
}

TEST_P(EachDialect, AStringWithoutAnEndIsRefusedWithItsLine) {
    const auto statements = split("SELECT 1;\nSELECT 'x;\n", GetParam());
    ASSERT_FALSE(statements);
    EXPECT_EQ(statements.error().line, 2U);
}

TEST_P(EachDialect, ACommentBehindTheLastStatementIsNoPartOfIt) {
    EXPECT_THAT(texts_of("SELECT 1 -- the end", GetParam()), ElementsAre("SELECT 1"));
}

INSTANTIATE_TEST_SUITE_P(All, EachDialect, testing::Values(Dialect::sqlite, Dialect::postgres, Dialect::mysql));

TEST(PostgresSplitter, DollarQuotesHoldWhateverTheyLike) {
    EXPECT_THAT(texts_of("DO $$ BEGIN; $x$ ; $x$; END $$; SELECT $a$ $b$ ; $a$;", Dialect::postgres),
                ElementsAre("DO $$ BEGIN; $x$ ; $x$; END $$", "SELECT $a$ $b$ ; $a$"));
    EXPECT_THAT(texts_of("SELECT $1; SELECT a$b; SELECT 2", Dialect::postgres),
                ElementsAre("SELECT $1", "SELECT a$b", "SELECT 2"));
    EXPECT_THAT(texts_of("SELECT $é$ ; $é$; SELECT 2", Dialect::postgres), ElementsAre("SELECT $é$ ; $é$", "SELECT 2"));
}

TEST(PostgresSplitter, ADollarQuoteWithoutAnEndIsRefused) {
    EXPECT_FALSE(split("DO $a$ BEGIN END $A$;", Dialect::postgres));
}

TEST(PostgresSplitter, BackslashesCountOnlyInEscapeStrings) {
    EXPECT_THAT(texts_of(R"(SELECT 'a\'; SELECT E'b\';'; SELECT e'\\'; SELECT 1)", Dialect::postgres),
                ElementsAre(R"(SELECT 'a\')", R"(SELECT E'b\';')", R"(SELECT e'\\')", "SELECT 1"));
}

TEST(PostgresSplitter, CommentsNest) {
    EXPECT_THAT(texts_of("/* a /* b; */ c; */ SELECT 1; SELECT 2", Dialect::postgres),
                ElementsAre("SELECT 1", "SELECT 2"));
}

TEST(PostgresSplitter, BeginAtomicIsOneBody) {
    constexpr auto body =
        "CREATE OR REPLACE FUNCTION f(a int) RETURNS int LANGUAGE sql\nBEGIN ATOMIC\n  SELECT CASE a WHEN "
        "1 THEN 2 END;\n  SELECT 3;\nEND";
    EXPECT_THAT(texts_of(std::string(body) + ";\nSELECT 1;", Dialect::postgres), ElementsAre(body, "SELECT 1"));
    constexpr auto procedure = "create procedure p() begin atomic insert into t values (1); end";
    EXPECT_THAT(texts_of(std::string(procedure) + "; SELECT 1", Dialect::postgres), ElementsAre(procedure, "SELECT 1"));
}

TEST(PostgresSplitter, AtomicInsideANameIsAName) {
    EXPECT_THAT(texts_of("CREATE FUNCTION begin_atomic() RETURNS int RETURN 1; SELECT 1", Dialect::postgres),
                ElementsAre("CREATE FUNCTION begin_atomic() RETURNS int RETURN 1", "SELECT 1"));
    EXPECT_THAT(texts_of("CREATE FUNCTION f() RETURNS int RETURN \"begin\".atomic; SELECT 1", Dialect::postgres),
                ElementsAre("CREATE FUNCTION f() RETURNS int RETURN \"begin\".atomic", "SELECT 1"));
    EXPECT_THAT(texts_of("CREATE TABLE atomic (begin int, atomic int); SELECT 1", Dialect::postgres),
                ElementsAre("CREATE TABLE atomic (begin int, atomic int)", "SELECT 1"));
    EXPECT_THAT(texts_of("SELECT begin atomic FROM t; SELECT 1", Dialect::postgres),
                ElementsAre("SELECT begin atomic FROM t", "SELECT 1"));
}

TEST(PostgresSplitter, ARuleHasSeveralStatementsInParentheses) {
    EXPECT_THAT(
        texts_of("CREATE RULE r AS ON INSERT TO t DO (DELETE FROM a; DELETE FROM b); SELECT 1", Dialect::postgres),
        ElementsAre("CREATE RULE r AS ON INSERT TO t DO (DELETE FROM a; DELETE FROM b)", "SELECT 1"));
}

TEST(PostgresSplitter, ABodyWithoutAnEndIsRefusedWithItsLine) {
    const auto statements = split("SELECT 1;\nCREATE FUNCTION f() BEGIN ATOMIC SELECT 1;", Dialect::postgres);
    ASSERT_FALSE(statements);
    EXPECT_EQ(statements.error().line, 2U);
}

TEST(SqliteSplitter, TriggersAreOneStatement) {
    constexpr auto trigger =
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  UPDATE b SET n = CASE WHEN n THEN 1 ELSE 2 END;\n"
        "  DELETE FROM c;\nEND";
    EXPECT_THAT(texts_of(std::string(trigger) + ";\nSELECT 1;", Dialect::sqlite), ElementsAre(trigger, "SELECT 1"));
    EXPECT_THAT(texts_of(trigger, Dialect::sqlite), ElementsAre(trigger));
}

TEST(SqliteSplitter, ATriggerWithoutItsEndIsRefused) {
    for (const char* script :
         {"CREATE TRIGGER t AFTER INSERT ON a", "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1;"})
        EXPECT_FALSE(split(script, Dialect::sqlite)) << script;
}

TEST(SqliteSplitter, BeginAndEndMayBeNames) {
    constexpr auto trigger =
        "CREATE TEMP TRIGGER \"begin\" AFTER UPDATE ON a BEGIN UPDATE b SET begin = new.end; SELECT end "
        "FROM b; END";
    EXPECT_THAT(texts_of(std::string(trigger) + "; SELECT 1", Dialect::sqlite), ElementsAre(trigger, "SELECT 1"));
    EXPECT_THAT(texts_of("CREATE TABLE trigger_log(begin, end); SELECT 1", Dialect::sqlite),
                ElementsAre("CREATE TABLE trigger_log(begin, end)", "SELECT 1"));
}

TEST(SqliteSplitter, NamesInBracketsAndBackquotes) {
    EXPECT_THAT(texts_of("SELECT [a;b], `c;d`; SELECT 1", Dialect::sqlite),
                ElementsAre("SELECT [a;b], `c;d`", "SELECT 1"));
}

/// SQLite's own opinion on where a statement ends.
TEST(SqliteSplitter, AgreesWithSqliteOnEachPiece) {
    constexpr auto script =
        "CREATE TABLE a(x);CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; SELECT CASE 1 WHEN 2 THEN 3 "
        "END; END;EXPLAIN QUERY PLAN CREATE TRIGGER u AFTER INSERT ON a BEGIN SELECT ';END;'; END;CREATE "
        "TEMPORARY TRIGGER v BEFORE DELETE ON a WHEN old.x = 'BEGIN' BEGIN DELETE FROM a; /*;END;*/ END;"
        "INSERT INTO a VALUES(';');";
    std::string rest = script;
    for (const std::string& statement : texts_of(script, Dialect::sqlite)) {
        EXPECT_TRUE(sqlite3_complete((statement + ";").c_str())) << statement;
        for (std::size_t at = 0; (at = statement.find(';', at)) != std::string::npos; ++at)
            EXPECT_FALSE(sqlite3_complete(statement.substr(0, at + 1).c_str())) << statement.substr(0, at + 1);
        ASSERT_TRUE(rest.starts_with(statement + ";"));
        rest.erase(0, statement.size() + 1);
    }
    EXPECT_EQ(rest, "");
}

TEST(MysqlSplitter, CommentsAndStringsOfItsOwn) {
    EXPECT_THAT(texts_of("SELECT 5--3; # no;\nSELECT 'a\\';', \"b\\\";\", `c;d`; -- x;\nSELECT 1", Dialect::mysql),
                ElementsAre("SELECT 5--3", "SELECT 'a\\';', \"b\\\";\", `c;d`", "SELECT 1"));
}

TEST(MysqlSplitter, AHintIsAStatement) {
    EXPECT_THAT(texts_of("/*!40101 SET NAMES utf8mb4; */; /* not; */ /*M!100100 SELECT 1 */;", Dialect::mysql),
                ElementsAre("/*!40101 SET NAMES utf8mb4; */", "/*M!100100 SELECT 1 */"));
}

TEST(MysqlSplitter, DelimiterLinesAreObeyed) {
    EXPECT_THAT(
        texts_of("SELECT 1;\nDELIMITER $$\nCREATE PROCEDURE p() BEGIN SELECT 1; SELECT '$$'; END$$\nSELECT 2 $$\n"
                 "delimiter ;\nSELECT 3;",
                 Dialect::mysql),
        ElementsAre("SELECT 1", "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT '$$'; END", "SELECT 2", "SELECT 3"));
    EXPECT_THAT(texts_of("DELIMITER //\nSELECT 4 / 2//\nSELECT 1 //", Dialect::mysql),
                ElementsAre("SELECT 4 / 2", "SELECT 1"));
}

struct CompoundCase {
    const char* name;
    const char* statement;
};
class CompoundBody : public testing::TestWithParam<CompoundCase> {};

TEST_P(CompoundBody, IsOneStatementWithoutDelimiter) {
    const std::string statement = GetParam().statement;
    EXPECT_THAT(texts_of("SELECT 1; " + statement + ";\nSELECT 2;", Dialect::mysql),
                ElementsAre("SELECT 1", statement, "SELECT 2"));
}

INSTANTIATE_TEST_SUITE_P(
    Mysql, CompoundBody,
    testing::Values(
        CompoundCase{"Procedure", "CREATE PROCEDURE p(IN a INT) BEGIN SELECT 1; BEGIN SELECT 2; END; END"},
        CompoundCase{"Labels", "CREATE PROCEDURE p() outer_block: BEGIN x: LOOP LEAVE x; END LOOP x; END outer_block"},
        CompoundCase{
            "CaseStatementAndExpression",
            "CREATE DEFINER=`a`@`%` FUNCTION f(a INT) RETURNS INT DETERMINISTIC BEGIN CASE a WHEN 1 THEN SELECT 1; "
            "ELSE BEGIN END; END CASE; RETURN CASE WHEN a THEN 1 ELSE 2 END; END"},
        CompoundCase{
            "IfStatementAndFunction",
            "CREATE TRIGGER t BEFORE INSERT ON x FOR EACH ROW BEGIN IF (NEW.a) THEN SET NEW.b = IF(NEW.a, 1, 2); "
            "ELSEIF NEW.c THEN SET NEW.b = 3; ELSE IF 1 THEN SET NEW.b = 4; END IF; END IF; END"},
        CompoundCase{"IfWithoutBegin",
                     "CREATE TRIGGER t BEFORE INSERT ON x FOR EACH ROW IF NEW.a IS NULL THEN SET NEW.a = 1; END IF"},
        CompoundCase{"SingleStatement", "CREATE TRIGGER t BEFORE INSERT ON x FOR EACH ROW SET NEW.a = IF(NEW.a, 1, 2)"},
        CompoundCase{
            "WhileAndRepeat",
            "CREATE PROCEDURE p() BEGIN WHILE a DO SET b = REPEAT('-', 3); END WHILE; REPEAT SET a = 1; UNTIL a END "
            "REPEAT; END"},
        CompoundCase{
            "HandlerAndCursor",
            "CREATE PROCEDURE p() BEGIN DECLARE c CURSOR FOR SELECT 1; DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN "
            "ROLLBACK; END; SELECT 1 FOR UPDATE; END"},
        CompoundCase{"ForLoopOfMariaDb", "CREATE PROCEDURE p() BEGIN FOR i IN 1..3 DO SELECT i; END FOR; END"},
        CompoundCase{"Event", "CREATE EVENT IF NOT EXISTS e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t"},
        CompoundCase{"EventBody",
                     "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO BEGIN DROP TABLE IF EXISTS a; SELECT 1; END"},
        CompoundCase{"IfExistsInside",
                     "CREATE PROCEDURE IF NOT EXISTS p() BEGIN CREATE TABLE IF NOT EXISTS a (b INT); END"},
        CompoundCase{
            "NamesBeginAndEnd",
            "CREATE PROCEDURE p() BEGIN SELECT begin, t.end FROM t WHERE begin = 1; UPDATE t SET begin = 2; END"},
        CompoundCase{"Anonymous", "BEGIN NOT ATOMIC DECLARE a INT; SELECT 1; END"},
        CompoundCase{"TableWithSuchColumns", "CREATE TABLE t (begin INT, `end` INT, procedure_name INT)"},
        CompoundCase{"Function", "CREATE FUNCTION f(a INT) RETURNS INT RETURN CASE a WHEN 1 THEN 2 END"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace holdfast::guards::migrate
