// Goal: the habits that nobody should have to ask for in a review.
// Method: read every file of ours; and show each check one file that it must refuse.

#include "tidy/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::tidy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<SourceFile> cpp_files() { return sources_below({"include", "src", "tests", "bench"}, {".hpp", ".cpp"}); }

std::vector<SourceFile> cmake_files() {
    auto files = sources_below({"include", "src", "tests", "bench", "cmake"}, {"CMakeLists.txt", ".cmake"});
    files.push_back(read_source("CMakeLists.txt"));
    return files;
}

TEST(EveryFile, FitsInOneSitting) { EXPECT_THAT(too_long(cpp_files()), IsEmpty()); }

TEST(EveryFile, HasNoTabsAndNoTrailingBlanks) {
    EXPECT_THAT(stray_blanks(cpp_files()), IsEmpty());
    EXPECT_THAT(stray_blanks(cmake_files()), IsEmpty());
    EXPECT_THAT(stray_blanks(sources_below({"scripts"}, {".sh"})), IsEmpty());
}

TEST(EveryFile, IsFinished) {
    EXPECT_THAT(unfinished_work(cpp_files()), IsEmpty());
    EXPECT_THAT(unfinished_work(cmake_files()), IsEmpty());
    EXPECT_THAT(unfinished_work(sources_below({"scripts"}, {".sh"})), IsEmpty());
    EXPECT_THAT(unfinished_work(sources_below({"docs"}, {".md"})), IsEmpty());
}

TEST(EveryTest, ThatIsSkippedSaysThatItIsBecauseOfThisMachine) {
    EXPECT_THAT(silent_skips(sources_below({"tests"}, {".hpp", ".cpp"})), IsEmpty());
}

TEST(TheCheckOfSkippedTests, RefusesOneWithoutAReasonThatIsListed) {
    const std::string skip = std::string("GTEST") + "_SKIP() << ";
    EXPECT_THAT(silent_skips({made_up("tests/cli/a.cpp", "x\n" + skip + "\"not root\";\n")}),
                ElementsAre(HasSubstr("tests/cli/a.cpp:2")));
    for (const std::string reason :
         {"not_here << \"x\"", "tests::not_here << \"x\"", "\"a sanitizer needs it; the release build runs this\""})
        EXPECT_THAT(silent_skips({made_up("tests/cli/a.cpp", skip + reason + ";\n")}), IsEmpty()) << reason;
    EXPECT_THAT(silent_skips({made_up("tests/conformance/a.cpp", skip + "name;\n")}), IsEmpty());
}

TEST(EveryHeader, MayBeIncludedTwice) { EXPECT_THAT(unguarded_headers(cpp_files()), IsEmpty()); }

TEST(EverySource, IsListedWhereItIsBuilt) {
    EXPECT_THAT(globbed_sources(cmake_files()), IsEmpty());
    EXPECT_THAT(unlisted_sources(sources_below({"src", "tests", "bench"}, {".cpp"}), cmake_files()), IsEmpty());
}

TEST(EverySource, LeavesTheClockToItsCaller) {
    EXPECT_THAT(host_clock_uses(sources_below({"src"}, {".hpp", ".cpp"})), IsEmpty());
}

TEST(TheCheckOfClocks, RefusesTheClockOfTheHost) {
    const std::string line = "auto now = host_clock().boottime();\n";
    EXPECT_THAT(host_clock_uses({made_up("src/stores/redis/wait.cpp", line)}), SizeIs(1));
    EXPECT_THAT(host_clock_uses({made_up("src/cli/app.cpp", line)}), IsEmpty());
}

TEST(TheCheckOfLength, RefusesOneLineTooMany) {
    std::string text;
    for (std::size_t i = 0; i < most_lines; ++i) text += "x\n";
    EXPECT_THAT(too_long({made_up("a.cpp", text)}), IsEmpty());
    EXPECT_THAT(too_long({made_up("a.cpp", text + "x\n")}), SizeIs(1));
}

TEST(TheCheckOfBlanks, RefusesTabsCarriageReturnsAndTrailingBlanks) {
    EXPECT_THAT(stray_blanks({made_up("a.cpp", "a\n\tb\nc \nd\r\n")}),
                ElementsAre(HasSubstr("a.cpp:2"), HasSubstr("a.cpp:3"), HasSubstr("a.cpp:4")));
}

TEST(TheCheckOfUnfinishedWork, RefusesTheUsualMarks) {
    const std::string mark = std::string("TO") + "DO";
    EXPECT_THAT(unfinished_work({made_up("a.cpp", "int a;  // " + mark + ": later\n")}), SizeIs(1));
    EXPECT_THAT(unfinished_work({made_up("a.cpp", "int MAS" + mark + "N;\n")}), IsEmpty());
}

TEST(TheCheckOfHeaders, RefusesOneWithoutPragmaOnce) {
    EXPECT_THAT(unguarded_headers({made_up("a.hpp", "int a();\n")}), SizeIs(1));
    EXPECT_THAT(unguarded_headers({made_up("a.cpp", "int a();\n")}), IsEmpty());
}

TEST(TheCheckOfSourceLists, RefusesAGlob) {
    EXPECT_THAT(globbed_sources({made_up("src/CMakeLists.txt", "file(GLOB all *.cpp)\n")}), SizeIs(1));
    EXPECT_THAT(globbed_sources({made_up("src/CMakeLists.txt", "file( GLOB_RECURSE all *.cpp)\n")}), SizeIs(1));
    EXPECT_THAT(globbed_sources({made_up("src/CMakeLists.txt", "file(STRINGS VERSION v)\n")}), IsEmpty());
}

TEST(TheCheckOfSourceLists, RefusesASourceThatNobodyBuilds) {
    const auto list = made_up("src/kernel/CMakeLists.txt", "add_library(k STATIC step.cpp codec.cpp)\n");
    EXPECT_THAT(unlisted_sources({made_up("src/kernel/step.cpp", "")}, {list}), IsEmpty());
    EXPECT_THAT(unlisted_sources({made_up("src/kernel/tep.cpp", "")}, {list}), SizeIs(1));
    EXPECT_THAT(unlisted_sources({made_up("src/base/step.cpp", "")}, {list}), SizeIs(1));
}

TEST(TheCheckOfSourceLists, UnderstandsALoop) {
    const auto list = made_up("tests/stores/CMakeLists.txt", "  holdfast_test(t SOURCES file_${part}_test.cpp)\n");
    EXPECT_THAT(unlisted_sources({made_up("tests/stores/file_damage_test.cpp", "")}, {list}), IsEmpty());
    EXPECT_THAT(unlisted_sources({made_up("tests/stores/sqlite_damage_test.cpp", "")}, {list}), SizeIs(1));
}

}  // namespace
}  // namespace holdfast::tidy
