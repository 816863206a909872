// Text on its way through `holdfast data sync`: what arrives in the database is what stands in the file.
#include "guards/data/data_fixture.hpp"

#include <random>

namespace holdfast::tests {
namespace {

class DataValuesTest : public DataFixture {
protected:
    static std::string quoted(std::string_view text) {
        std::string result = "\"";
        for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
        return result + "\"";
    }
    /// Syncs one value for each row, and compares all of them.
    void expect_arrive(const std::vector<std::string>& values, const std::string& strategy) {
        std::string text = "v,id\r\n";
        for (std::size_t i = 0; i < values.size(); ++i) text += quoted(values[i]) + "," + std::to_string(i) + "\r\n";
        configure_t(strategy);
        file("t/a.csv", text);
        const Ended done = sync();
        ASSERT_EQ(done.status, 0) << done.err << done.out;
        const auto session = place_.connect();
        const auto all = session->run({.text = "SELECT v FROM t ORDER BY id", .values = {}}, Deadline::never());
        ASSERT_TRUE(all);
        ASSERT_EQ(all->rows.size(), values.size());
        for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(all->rows[i].at(0), values[i]) << strategy << i;
        EXPECT_EQ(sync().json().number("/tables/0/unchanged"),
                  strategy == "truncate" ? 0 : static_cast<std::int64_t>(values.size()));
    }
};

const std::vector<std::string> hostile{
    "",
    "007",
    " 7 ",
    "NULL",
    "null",
    "\\N",
    "\\.",
    "\n\\.\n",
    "\\",
    "\\\\n\\t",
    "a\tb\r\nc\rd",
    "'); DROP TABLE t; --",
    "\"\"",
    "`${x}` $1 $$ ? % {} :a",
    "\x01\x02\x7f\x1b[31m",
    "\xef\xbb\xbfmark",
    "\xf0\x9f\x90\x98 \xe2\x80\xae \xc3\xa9",
    "x'41'",
    "0x41",
    "2024-01-01",
    "true",
};

TEST_P(DataValuesTest, HostileTextArrivesAsItStands) {
    create_t();
    expect_arrive(hostile, "mirror");
    expect_arrive(hostile, "truncate");
}

TEST_P(DataValuesTest, RandomTextArrivesAsItStands) {
    create_t();
    std::mt19937_64 random(seed_of("data values"));
    const std::vector<std::string> parts{"a", "\\", "\"", "'",        "\n", "\r", "\t",
                                         ",", "N",  ".",  "\xc3\xa9", "`",  "$1", " "};
    std::vector<std::string> values(200);
    for (std::string& value : values)
        for (std::size_t i = random() % 12; i > 0; --i) value += parts[random() % parts.size()];
    expect_arrive(values, "mirror");
    expect_arrive(values, "truncate");
}

TEST_P(DataValuesTest, ALongFieldArrivesWhole) {
    create_t();
    std::string text;
    while (text.size() < 3'000'000) text += "0123456789 \\ ' \n \xc3\xa9,";
    expect_arrive({text, "short", text}, "mirror");
}

TEST_P(DataValuesTest, OnlyTheCaseOrTheTailOfATextIsAChange) {
    run("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v VARCHAR(20))");
    run("INSERT INTO t VALUES (1, 'a'), (2, 'b')");
    configure_t("upsert");
    file("t/a.csv", "id,v\n1,A\n2,b \n");
    const Ended done = sync();
    EXPECT_EQ(done.json().number("/tables/0/updated"), 2) << done.out;
    EXPECT_EQ(rows_of_t(), "1=A 2=b ");
}

TEST_P(DataValuesTest, NamesWithQuotesAreNames) {
    const char quote = is(SqlDialect::mysql) ? '`' : '"';
    const std::string doubled = std::string(2, quote);
    const std::string table = fmt::format("{0}we {1} ird'; --{0}", quote, doubled);
    const std::string column = fmt::format("{0}c {1} $1{0}", quote, doubled);
    run(fmt::format("CREATE TABLE {} (id INT NOT NULL PRIMARY KEY, {} VARCHAR(20))", table, column));
    const std::string plain = std::string("we ") + quote + " ird'; --";
    configure("[[data.table]]\nname = '''" + plain + "'''\nstrategy = \"mirror\"\n");
    file(plain + "/a.csv", fmt::format("id,{}\n1,x\n", quoted(std::string("c ") + quote + " $1")));
    const Ended done = sync();
    ASSERT_EQ(done.status, 0) << done.err << done.out;
    EXPECT_EQ(ask(fmt::format("SELECT {} FROM {}", column, table)), "x");
    run("DROP TABLE " + table);
}

TEST_P(DataValuesTest, AColumnThatTheFilesDoNotHaveKeepsItsValues) {
    run("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v VARCHAR(20), w VARCHAR(20) DEFAULT 'new')");
    run("INSERT INTO t VALUES (1, 'a', 'old')");
    configure_t("mirror");
    file("t/a.csv", "id,v\n1,b\n2,c\n");
    ASSERT_EQ(sync().status, 0);
    EXPECT_EQ(ask("SELECT COUNT(*) FROM t WHERE (id = 1 AND v = 'b' AND w = 'old') OR (id = 2 AND w = 'new')"), "2");
}

TEST_P(DataValuesTest, ATextThatTheDatabaseWouldCutIsRefused) {
    // SQLite has no lengths.
    if (is(SqlDialect::sqlite)) return;
    run("CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v VARCHAR(3))");
    if (is(SqlDialect::mysql)) run("SET GLOBAL sql_mode = ''");
    configure_t("upsert");
    file("t/a.csv", "id,v\n1,four\n");
    const Ended refused = sync();
    if (is(SqlDialect::mysql)) run("SET GLOBAL sql_mode = DEFAULT");
    EXPECT_EQ(refused.status, 65) << refused.out;
    EXPECT_THAT(refused.json().text("/error/message"), HasSubstr("t/a.csv:2"));
}

INSTANTIATE_TEST_SUITE_P(Databases, DataValuesTest, all_dialects(),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace holdfast::tests
