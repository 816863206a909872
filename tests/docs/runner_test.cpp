// Goal: the runner of the examples finds what is wrong, and nothing else. Method: small pages and sessions with
// one mistake each; the command under test is a script of three lines, so that its output is known.

#include "docs/markdown.hpp"
#include "docs/session.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace holdfast::docs {
namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

/// Stands in for the command: prints its arguments, and ends with the number that follows `fail`.
class RunnerTest : public testing::Test {
protected:
    RunnerTest() {
        std::ofstream(command()) << "#!/bin/sh\necho \"got $*\"\n[ \"$1\" != fail ] || exit \"$2\"\n";
        fs::permissions(command(), fs::perms::owner_all);
    }

    [[nodiscard]] fs::path command() const { return folder_.path() / "command"; }
    [[nodiscard]] std::string script(const Lines& lines) const { return Sandbox(command()).run_script(lines); }
    [[nodiscard]] std::string session(const Lines& lines) const { return Sandbox(command()).run_session(lines); }

private:
    tests::TempFolder folder_{};
};

TEST_F(RunnerTest, AcceptsASessionThatPrintsWhatThePageSays) {
    EXPECT_EQ(session({"$ holdfast a b", "got a b"}), "");
    EXPECT_EQ(session({"$ holdfast a b", "got … b"}), "");
    EXPECT_EQ(session({"$ holdfast fail 75", "got fail 75", "(exit 75)", "", "$ holdfast c", "got c"}), "");
}

TEST_F(RunnerTest, FindsAWrongLineOfOutput) { EXPECT_NE(session({"$ holdfast a", "got b"}), ""); }

TEST_F(RunnerTest, FindsOutputThatThePageLeavesOut) {
    EXPECT_NE(session({"$ holdfast a"}), "");
    EXPECT_NE(session({"$ holdfast a; holdfast b", "got a"}), "");
}

TEST_F(RunnerTest, FindsOutputThatNeverComes) { EXPECT_NE(session({"$ holdfast a", "got a", "got b"}), ""); }

TEST_F(RunnerTest, FindsAWrongExitStatus) {
    EXPECT_NE(session({"$ holdfast fail 75", "got fail 75"}), "");
    EXPECT_NE(session({"$ holdfast fail 75", "got fail 75", "(exit 76)"}), "");
    EXPECT_NE(session({"$ holdfast a", "got a", "(exit 75)"}), "");
}

TEST_F(RunnerTest, FindsASessionThatEndsBeforeItsLastCommand) {
    EXPECT_NE(session({"$ exit 0", "$ holdfast a", "got a"}), "");
}

TEST_F(RunnerTest, RefusesASessionWithoutACommand) {
    EXPECT_NE(session({}), "");
    EXPECT_NE(session({"holdfast a", "got a"}), "");
}

TEST_F(RunnerTest, KeepsVariablesAndFurtherLinesOfACommand) {
    EXPECT_EQ(session({"$ name=x", "$ holdfast \\", "> \"$name\"", "got x"}), "");
}

TEST_F(RunnerTest, FindsAScriptThatFailsInTheMiddle) {
    EXPECT_EQ(script({"holdfast a", "holdfast b"}), "");
    EXPECT_NE(script({"holdfast fail 3", "holdfast b"}), "");
}

TEST_F(RunnerTest, GivesEveryExampleAnEmptyFolderAndAHomeOfItsOwn) {
    EXPECT_EQ(session({"$ ls", "$ ls -A \"$HOME\"", "$ touch here \"$HOME/there\""}), "");
    EXPECT_EQ(session({"$ ls", "$ ls -A \"$HOME\""}), "");
}

TEST_F(RunnerTest, RefusesToRunWithoutTheCommand) { EXPECT_THROW(Sandbox("/nowhere/holdfast"), std::runtime_error); }

TEST(Wildcard, StandsForAnyTextOfALine) {
    EXPECT_TRUE(line_matches("held by … since …", "held by ci@web-3 since 14:02"));
    EXPECT_TRUE(line_matches("a…", "a"));
    EXPECT_TRUE(line_matches("…b…", "abab"));
    EXPECT_FALSE(line_matches("held by … since …", "held by ci@web-3"));
    EXPECT_FALSE(line_matches("a…c", "abcd"));
    EXPECT_FALSE(line_matches("a", "ab"));
}

TEST(Wildcard, AloneOnALineStandsForAnyNumberOfLines) {
    EXPECT_TRUE(output_matches({"a", "…", "d"}, {"a", "b", "c", "d"}));
    EXPECT_TRUE(output_matches({"a", "…", "d"}, {"a", "d"}));
    EXPECT_TRUE(output_matches({"…"}, {}));
    EXPECT_FALSE(output_matches({"a", "…", "d"}, {"a", "b"}));
    EXPECT_FALSE(output_matches({"…", "d"}, {"d", "e"}));
}

TEST(Page, IsReadBlockByBlock) {
    const auto blocks = blocks_of("text\n```sh\none\n```\n\n````text\n```\nnot a fence\n```\n````\n");
    ASSERT_TRUE(blocks);
    ASSERT_EQ(blocks->size(), 2U);
    EXPECT_EQ(blocks->at(0).line, 2U);
    EXPECT_EQ(blocks->at(0).lines, Lines{"one"});
    EXPECT_EQ(blocks->at(1).lines, (Lines{"```", "not a fence", "```"}));
}

TEST(Page, WithABlockThatIsNeverClosedIsRefused) { EXPECT_FALSE(blocks_of("```sh\none\n")); }

TEST(Marking, IsKnownOrTheTestFails) {
    EXPECT_EQ(marking_of("sh"), Marking::run_script);
    EXPECT_EQ(marking_of("console"), Marking::run_session);
    EXPECT_EQ(marking_of("sh no-run: builds everything"), Marking::not_run);
    EXPECT_EQ(marking_of("cpp from docs/examples/a.cpp"), Marking::quoted_code);
    EXPECT_EQ(marking_of("toml"), Marking::only_shown);
    for (const char* info : {"", "bash", "shell", "sh no-run", "sh no-run:", "sh norun", "console x", "cpp from"})
        EXPECT_EQ(marking_of(info), Marking::unknown) << info;
}

TEST(Links, AreThoseToFiles) {
    EXPECT_EQ(
        links_of(
            "[a](b.md#c) and `[no](code.md)`\n```text\n[no](fence.md)\n```\n[web](https://x.org) [here](#there)\n"),
        Lines{"b.md"});
}

TEST(QuotedCode, IsAConnectedPartOfTheFile) {
    constexpr std::string_view file = "int main() {\n    one();\n    two();\n    three();\n}\n";
    EXPECT_TRUE(is_part_of({"one();", "two();"}, file));
    EXPECT_FALSE(is_part_of({"one();", "three();"}, file));
    EXPECT_FALSE(is_part_of({}, file));
}

}  // namespace
}  // namespace holdfast::docs
