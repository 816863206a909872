#include "guards/sql/data/yaml.hpp"

#include "guards/data/collected.hpp"

#include <gmock/gmock.h>

#include <sstream>

namespace holdfast::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

Result<void> read_rows(Collected& all, const std::string& text) {
    std::istringstream in(text);
    return guards::data::read_yaml("a.yaml", in, all);
}

std::string refusal_of_yaml(const std::string& text) {
    Collected all;
    const auto done = read_rows(all, text);
    return done ? "accepted" : done.error().message;
}

TEST(YamlTest, ValuesAreTextAsTheyStand) {
    Collected all;
    ASSERT_TRUE(read_rows(
        all, "- a: 007\n  b: yes\n  c: 1_000\n- c: 2024-01-01\n  a: \"x\\ny\"\n  b: |\n    two\n    lines\n"));
    EXPECT_THAT(all.names, ElementsAre("a", "b", "c"));
    EXPECT_THAT(all.rows.at(0).cells, ElementsAre(Optional(std::string("007")), Optional(std::string("yes")),
                                                  Optional(std::string("1_000"))));
    EXPECT_THAT(all.rows.at(1).cells, ElementsAre(Optional(std::string("x\ny")), Optional(std::string("two\nlines\n")),
                                                  Optional(std::string("2024-01-01"))));
    EXPECT_EQ(all.rows.at(1).line, 4U);
}

TEST(YamlTest, NothingIsNullUnlessItIsQuoted) {
    Collected all;
    ASSERT_TRUE(read_rows(all, "- {a: , b: ~, c: null, d: '', e: \"null\", f: '~', g: !!str null}\n"));
    EXPECT_THAT(all.rows.at(0).cells,
                ElementsAre(std::nullopt, std::nullopt, std::nullopt, Optional(std::string()),
                            Optional(std::string("null")), Optional(std::string("~")), Optional(std::string("null"))));
}

TEST(YamlTest, AMappingAloneIsOneRow) {
    Collected all;
    ASSERT_TRUE(read_rows(all, "a: 1\nb: ~\n"));
    EXPECT_THAT(all.names, ElementsAre("a", "b"));
    ASSERT_EQ(all.rows.size(), 1U);
    EXPECT_THAT(all.rows[0].cells, ElementsAre(Optional(std::string("1")), std::nullopt));
}

TEST(YamlTest, AnEmptyListHasNoRows) {
    Collected all;
    ASSERT_TRUE(read_rows(all, "# nobody\n[]\n"));
    EXPECT_TRUE(all.names.empty());
    EXPECT_TRUE(all.rows.empty());
}

TEST(YamlTest, WhatIsWrongIsNamedWithItsLine) {
    EXPECT_THAT(refusal_of_yaml("- a: 1\n- b: 2\n"),
                HasSubstr("a.yaml:2: the row has \"b\", which the first row has not"));
    EXPECT_THAT(refusal_of_yaml("- a: 1\n  b: 2\n- b: 2\n"), HasSubstr("a.yaml:3: the row has no \"a\""));
    EXPECT_THAT(refusal_of_yaml("- a: 1\n  a: 2\n"), HasSubstr("a.yaml:2: the column \"a\" is there twice"));
    EXPECT_THAT(refusal_of_yaml("text\n"), HasSubstr("a.yaml:1: a data file is a list of rows"));
    EXPECT_THAT(refusal_of_yaml("a: {b: 1}\n"), HasSubstr("a.yaml:1: a value is a text"));
    EXPECT_THAT(refusal_of_yaml("- 1\n"), HasSubstr("a.yaml:1: a row is a mapping"));
    EXPECT_THAT(refusal_of_yaml("- a: [1]\n"), HasSubstr("a.yaml:1: a value is a text"));
    EXPECT_THAT(refusal_of_yaml("- a:\n    b: 1\n"), HasSubstr("a.yaml:2: a value is a text"));
    EXPECT_THAT(refusal_of_yaml("- a: !!int 1\n"), HasSubstr("a.yaml:1: a tag"));
    EXPECT_THAT(refusal_of_yaml("- {}\n"), HasSubstr("a.yaml:1: a row without a column"));
    EXPECT_THAT(refusal_of_yaml("- ~: 1\n"), HasSubstr("a.yaml:1: a column has no name"));
    EXPECT_THAT(refusal_of_yaml("- a: 1\n---\n- a: 2\n"), HasSubstr("a second document"));
    EXPECT_THAT(refusal_of_yaml("- a: \"\\0\"\n"), HasSubstr("a.yaml:1: a NUL character"));
    EXPECT_THAT(refusal_of_yaml("- a: 'x\n"), HasSubstr("a.yaml:"));
    EXPECT_THAT(refusal_of_yaml("- a: \"x"), HasSubstr("a.yaml:"));
    EXPECT_THAT(refusal_of_yaml("[{a: 1}"), HasSubstr("a.yaml:"));
    EXPECT_THAT(refusal_of_yaml("- a: 1\n b: 2\n"), HasSubstr("a.yaml:2"));
    EXPECT_THAT(refusal_of_yaml(""), HasSubstr("a.yaml:1: the file is empty"));
}

TEST(YamlTest, AnchorsAndAliasesAreRefused) {
    EXPECT_THAT(refusal_of_yaml("- &a {x: 1}\n- *a\n"), HasSubstr("a.yaml:1: an anchor"));
    EXPECT_THAT(refusal_of_yaml("- x: &a lol\n"), HasSubstr("a.yaml:1: an anchor"));
    std::string bomb = "- &b0 [x, x, x, x]\n";
    for (int i = 1; i < 30; ++i) bomb += "- &b" + std::to_string(i) + " [*b" + std::to_string(i - 1) + "]\n";
    EXPECT_THAT(refusal_of_yaml(bomb), HasSubstr("a.yaml:1"));
    EXPECT_THAT(refusal_of_yaml(std::string(100'000, '[')), HasSubstr("a.yaml:1"));
    EXPECT_THAT(refusal_of_yaml("- a: " + std::string(100'000, '{')), HasSubstr("a.yaml:1"));
}

}  // namespace
}  // namespace holdfast::tests
