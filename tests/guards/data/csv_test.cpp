#include "guards/sql/data/csv.hpp"

#include "guards/data/collected.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace holdfast::tests {
namespace {

using guards::data::CsvReader;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

/// Reads `text` in pieces of `size`.
Result<Collected*> read(Collected& all, std::string_view text, std::size_t size) {
    CsvReader reader("a.csv", all);
    for (; !text.empty(); text.remove_prefix(std::min(size, text.size())))
        if (auto fed = reader.feed(text.substr(0, size)); !fed) return std::unexpected(fed.error());
    if (auto done = reader.finish(); !done) return std::unexpected(done.error());
    return &all;
}

std::string refusal_of(std::string_view text) {
    Collected all;
    const auto done = read(all, text, 4096);
    return done ? "accepted" : done.error().message;
}

TEST(CsvTest, AnEmptyFieldIsNullAndAnEmptyTextIsNot) {
    Collected all;
    ASSERT_TRUE(read(all, "a,b,c\n,\"\",x\n,,\n", 4096));
    ASSERT_EQ(all.rows.size(), 2U);
    EXPECT_THAT(all.rows[0].cells, ElementsAre(std::nullopt, Optional(std::string()), Optional(std::string("x"))));
    EXPECT_THAT(all.rows[1].cells, ElementsAre(std::nullopt, std::nullopt, std::nullopt));
}

TEST(CsvTest, NothingIsTakenForANumber) {
    Collected all;
    ASSERT_TRUE(read(all, "a\n007\n 7\n1e3\n", 4096));
    EXPECT_THAT(all.rows[0].cells, ElementsAre(Optional(std::string("007"))));
    EXPECT_THAT(all.rows[1].cells, ElementsAre(Optional(std::string(" 7"))));
    EXPECT_THAT(all.rows[2].cells, ElementsAre(Optional(std::string("1e3"))));
}

TEST(CsvTest, QuotesHoldCommasLinesAndQuotes) {
    Collected all;
    ASSERT_TRUE(read(all, "a,b\r\n\"x,\"\"y\"\"\r\n\\z\",2\r\n3,4", 4096));
    ASSERT_EQ(all.rows.size(), 2U);
    EXPECT_THAT(all.rows[0].cells, ElementsAre(Optional(std::string("x,\"y\"\r\n\\z")), Optional(std::string("2"))));
    EXPECT_EQ(all.rows[0].line, 2U);
    EXPECT_EQ(all.rows[1].line, 4U) << "the row before has two lines";
}

TEST(CsvTest, PiecesOfAnySizeGiveTheSameRows) {
    const std::string text =
        "\xef\xbb\xbf"
        "a,\"b\"\"\"\r\n\"\"\"\",\"\"\n,\"x\r\ny\"\r\n\"\",";
    Collected whole;
    ASSERT_TRUE(read(whole, text, text.size()));
    EXPECT_THAT(whole.names, ElementsAre("a", "b\""));
    // The mark at the beginning of a file comes in one piece.
    for (std::size_t size = 3; size < text.size(); ++size) {
        Collected cut;
        ASSERT_TRUE(read(cut, text, size)) << size;
        EXPECT_EQ(cut.names, whole.names) << size;
        EXPECT_EQ(cut.rows, whole.rows) << size;
    }
}

TEST(CsvTest, WhatIsWrongIsNamedWithItsLine) {
    EXPECT_THAT(refusal_of("a,b\n1,2\n3\n"), HasSubstr("a.csv:3: the row has 1 field, and there are 2 columns"));
    EXPECT_THAT(refusal_of("a,b\n1,2,3\n"), HasSubstr("a.csv:2: the row has more than 2 fields"));
    EXPECT_THAT(refusal_of("a,b\n\n"), HasSubstr("a.csv:2: an empty line"));
    EXPECT_THAT(refusal_of("a,b\nx\"y,2\n"), HasSubstr("a.csv:2: a quote inside of a field"));
    EXPECT_THAT(refusal_of("a,b\n\"x\"y,2\n"), HasSubstr("a.csv:2: text behind the closing quote"));
    EXPECT_THAT(refusal_of("a,b\n\n1,\"2\n"), HasSubstr("a.csv:2"));
    EXPECT_THAT(refusal_of("a,b\n1,\"2\n3,4\n"), HasSubstr("a.csv:2: a field begins with a quote"));
    EXPECT_THAT(refusal_of("a,b\r1,2\n"), HasSubstr("a.csv:1: a carriage return stands alone"));
    EXPECT_THAT(refusal_of("a,b\n1,2\r"), HasSubstr("a.csv:2: a carriage return stands alone"));
    EXPECT_THAT(refusal_of("a,b,a\n"), HasSubstr("a.csv:1: the column \"a\" is there twice"));
    EXPECT_THAT(refusal_of("a,,c\n"), HasSubstr("a.csv:1: a column has no name"));
    EXPECT_THAT(refusal_of(""), HasSubstr("a.csv:1: the file is empty"));
}

TEST(CsvTest, ARowHasAnEnd) {
    Collected all;
    CsvReader reader("a.csv", all);
    ASSERT_TRUE(reader.feed("a\n\""));
    const std::string much(std::size_t{1024} * 1024, 'x');
    Result<void> fed;
    for (int i = 0; i < 65 && fed; ++i) fed = reader.feed(much + "\n");
    ASSERT_FALSE(fed);
    EXPECT_THAT(fed.error().message, HasSubstr("is the quote of line 2 never closed?"));
}

TEST(CsvTest, AHeaderAloneHasNoRows) {
    Collected all;
    ASSERT_TRUE(read(all, "a,b", 4096));
    EXPECT_THAT(all.names, ElementsAre("a", "b"));
    EXPECT_TRUE(all.rows.empty());
}

}  // namespace
}  // namespace holdfast::tests
