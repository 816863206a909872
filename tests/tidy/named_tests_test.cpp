// Goal: a page that names tests names those that exist, one for each number in its text.
// Method: read the page and the tests; and show each check a page that is wrong.

#include "tidy/named_tests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::tidy {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(SecurityPage, NamesTestsThatExist) {
    const auto page = read_source("docs/reference/security.md");
    EXPECT_THAT(tests_that_do_not_exist(page, sources_below({"tests"}, {".cpp"})), IsEmpty());
    EXPECT_THAT(numbers_without_partner(page), IsEmpty());
}

TEST(WorktreePage, NamesTestsThatExist) {
    const auto page = read_source("docs/reference/worktree.md");
    EXPECT_THAT(tests_that_do_not_exist(page, sources_below({"tests"}, {".cpp"})), IsEmpty());
}

TEST(NamedTestsCheck, RefusesATestThatDoesNotExist) {
    const std::vector tests{
        made_up("a_test.cpp", "TEST(Door, IsShut) {\nTEST_F(Door, Opens) {\nTEST_P(Key, Fits) {\n")};
    EXPECT_THAT(tests_that_do_not_exist(made_up("a.md", "| 1 | `Door.IsShut`, `Door.Opens`, `Key.Fits` |\n"), tests),
                IsEmpty());
    EXPECT_THAT(tests_that_do_not_exist(made_up("a.md", "`Door.IsOpen` and `Key.Opens`\n"), tests), SizeIs(2));
}

TEST(NamedTestsCheck, RefusesANumberWithoutARowAndARowWithoutANumber) {
    EXPECT_THAT(numbers_without_partner(made_up("a.md", "It holds [1][2].\n| 1 | `A.B` |\n| 2 | `A.C` |\n")),
                IsEmpty());
    EXPECT_THAT(numbers_without_partner(made_up("a.md", "It holds [1].\n| 2 | `A.C` |\n")), SizeIs(2));
}

}  // namespace
}  // namespace holdfast::tidy
