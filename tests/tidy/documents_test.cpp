// Goal: pages that repeat the code agree with it.
// Method: compare them with the tables that the code itself uses; and show each check a page that is wrong.

#include "tidy/documents.hpp"

#include "holdfast/open.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace holdfast::tidy {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr std::array two_rows{
    ErrorRow{Errc::usage, "E_USAGE", 64, 400, "Fix the call."},
    ErrorRow{Errc::drift, "E_DRIFT", 83, 0, "Decide."},
};

Complaints complaints_about(std::string_view page) { return wrong_error_rows(made_up("errors.md", page), two_rows); }

TEST(ErrorPage, SaysWhatTheErrorTableSays) {
    EXPECT_THAT(wrong_error_rows(read_source("docs/reference/errors.md"), error_table()), IsEmpty());
}

TEST(ErrorTable, HasARowForEveryCode) {
    EXPECT_THAT(codes_without_row(read_source("include/holdfast/error.hpp"), error_table()), IsEmpty());
    EXPECT_THAT(codes_without_row(made_up("error.hpp", "    usage = 8,  ///< A\n    denied = 9,\n"), two_rows),
                SizeIs(1));
}

TEST(ErrorPageCheck, AcceptsExactRowsBetweenOtherText) {
    EXPECT_THAT(complaints_about("# Errors\n| `E_USAGE` | 64 | 400 | Fix the call. |\n"
                                 "| `E_DRIFT` | 83 | – | Decide. |\nThe end.\n"),
                IsEmpty());
}

TEST(ErrorPageCheck, RefusesAMissingRow) {
    EXPECT_THAT(complaints_about("| `E_USAGE` | 64 | 400 | Fix the call. |\n"), SizeIs(1));
}

TEST(ErrorPageCheck, RefusesARowThatDiffersInAnyColumn) {
    const std::string drift = "| `E_DRIFT` | 83 | – | Decide. |\n";
    for (const std::string usage :
         {"| `E_USAGE` | 65 | 400 | Fix the call. |\n", "| `E_USAGE` | 64 | 401 | Fix the call. |\n",
          "| `E_USAGE` | 64 | 400 | Fix it. |\n", "| `E_USE` | 64 | 400 | Fix the call. |\n"})
        EXPECT_THAT(complaints_about(usage + drift), SizeIs(2)) << usage;
}

TEST(ErrorPageCheck, RefusesAnotherOrder) {
    EXPECT_THAT(complaints_about("| `E_DRIFT` | 83 | – | Decide. |\n| `E_USAGE` | 64 | 400 | Fix the call. |\n"),
                SizeIs(1));
}

TEST(ArchitecturePage, NamesEveryFolderOfSrc) {
    std::vector<std::string> folders;
    for (const std::string& name : folders_in("src")) folders.push_back("src/" + name);
    ASSERT_THAT(folders, SizeIs(testing::Gt(5)));
    EXPECT_THAT(unmentioned(read_source("docs/ARCHITECTURE.md"), folders), IsEmpty());
}

TEST(StoresPage, ShowsEveryScheme) {
    std::vector<std::string> schemes;
    for (const std::string_view scheme : known_schemes()) schemes.push_back(std::string(scheme) + ":");
    ASSERT_FALSE(schemes.empty());
    EXPECT_THAT(unmentioned(read_source("docs/reference/stores.md"), schemes), IsEmpty());
}

TEST(ContributingPage, ListsEveryLabelOfTheTests) {
    auto labels = labels_in(sources_below({"tests"}, {"CMakeLists.txt"}));
    ASSERT_THAT(labels, testing::IsSupersetOf({"unit", "quick", "conformance"}));
    labels.emplace_back("stores");  // By its folder.
    std::vector<std::string> first_cells;
    for (const std::string& label : labels) first_cells.push_back("| `" + label + "` |");
    EXPECT_THAT(unmentioned(read_source("CONTRIBUTING.md"), first_cells), IsEmpty());
}

TEST(DecisionRecords, HaveAStatusAndTheSameFourParts) {
    const auto records = sources_below({"docs/adr"}, {".md"});
    ASSERT_FALSE(records.empty());
    for (const SourceFile& record : records)
        EXPECT_THAT(unmentioned(record, {"Status: ", "## Context", "## Choice", "## Alternatives", "## Consequences"}),
                    IsEmpty());
}

TEST(LabelCheck, FindsEachLabelOnceAndNoneInComments) {
    const auto file =
        made_up("CMakeLists.txt", "# [LABELS quick]\n  LABELS unit)\n  TIMEOUT 60 LABELS docs)\nLABELS unit\n");
    EXPECT_THAT(labels_in({file}), testing::ElementsAre("docs", "unit"));
}

/// Pages that are older than the rule. Remove a page from this list after wrapping its lines.
bool may_be_wide(const SourceFile& page) {
    static constexpr std::array beginnings{"README.md",           "docs/ARCHITECTURE.md", "docs/PROTOCOL.md",
                                           "docs/adding-a-store", "docs/reference/",      "docs/reliability.md"};
    return std::ranges::any_of(beginnings, [&](const char* text) { return page.path.starts_with(text); });
}

TEST(Prose, FitsIntoAWindow) {
    auto pages = sources_below({"docs"}, {".md"});
    for (const char* page : {"CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "UPGRADING.md"})
        pages.push_back(read_source(page));
    std::erase_if(pages, may_be_wide);
    ASSERT_THAT(pages, SizeIs(testing::Gt(20)));
    EXPECT_THAT(wide_prose(pages), IsEmpty());
}

TEST(ProseCheck, CountsCharactersOfProseOnly) {
    const std::string most(most_columns, 'x');
    std::string dashes;
    for (std::size_t i = 0; i < most_columns; ++i) dashes += "–";
    EXPECT_THAT(wide_prose({made_up("a.md", most + "\n" + dashes + "\n")}), IsEmpty());
    EXPECT_THAT(wide_prose({made_up("a.md", "| " + most + " |\n```sh\n" + most + "x\n```\n")}), IsEmpty());
    EXPECT_THAT(wide_prose({made_up("a.md", "```sh\n```\n" + most + "x\n- " + most + "\n")}), SizeIs(2));
}

TEST(MentionCheck, RefusesAPageThatLeavesSomethingOut) {
    const auto page = made_up("a.md", "`kernel/` decides\n");
    EXPECT_THAT(unmentioned(page, {"kernel/"}), IsEmpty());
    EXPECT_THAT(unmentioned(page, {"kernel/", "stores/"}), SizeIs(1));
}

}  // namespace
}  // namespace holdfast::tidy
