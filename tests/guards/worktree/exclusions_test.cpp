// Goal: the exclusion list leaves out what people who know .gitignore expect, and nothing else.
#include "guards/worktree/exclusions.hpp"

#include <gtest/gtest.h>

namespace holdfast::guards::worktree {
namespace {

using Thing = Exclusions::Thing;

bool left_out(std::string_view list, std::string_view path, Thing thing = Thing::other) {
    const auto exclusions = Exclusions::parse(list);
    EXPECT_TRUE(exclusions) << list;
    return exclusions && exclusions->leaves_out(path, thing);
}

TEST(Exclusions, APatternWithoutASlashFitsInEveryFolder) {
    EXPECT_TRUE(left_out("*.log", "a.log"));
    EXPECT_TRUE(left_out("*.log", "deep/er/a.log"));
    EXPECT_FALSE(left_out("*.log", "a.logs"));
    EXPECT_TRUE(left_out("a?c", "x/abc"));
    EXPECT_FALSE(left_out("a?c", "a/c"));
}

TEST(Exclusions, APatternWithASlashIsTiedToTheRoot) {
    EXPECT_TRUE(left_out("/build", "build", Thing::folder));
    EXPECT_FALSE(left_out("/build", "src/build", Thing::folder));
    EXPECT_TRUE(left_out("src/*.o", "src/a.o"));
    EXPECT_FALSE(left_out("src/*.o", "src/x/a.o"));
    EXPECT_FALSE(left_out("src/*.o", "other/src/a.o"));
}

TEST(Exclusions, TwoStarsCrossFolders) {
    EXPECT_TRUE(left_out("src/**/a.o", "src/a.o"));
    EXPECT_TRUE(left_out("src/**/a.o", "src/x/y/a.o"));
    EXPECT_TRUE(left_out("cache/**", "cache/x/y"));
    EXPECT_FALSE(left_out("cache/**", "cache", Thing::folder));
    EXPECT_TRUE(left_out("**/cache", "x/y/cache"));
}

TEST(Exclusions, ASlashAtTheEndMeansFoldersOnly) {
    EXPECT_TRUE(left_out("tmp/", "x/tmp", Thing::folder));
    EXPECT_FALSE(left_out("tmp/", "x/tmp", Thing::other));
}

TEST(Exclusions, TheLastPatternThatFitsDecides) {
    EXPECT_FALSE(left_out("*.log\n!keep.log", "keep.log"));
    EXPECT_TRUE(left_out("!keep.log\n*.log", "keep.log"));
    EXPECT_TRUE(left_out("*.log\n!keep.log", "other.log"));
}

TEST(Exclusions, CommentsEmptyLinesAndBlanksAtTheEndCountForNothing) {
    EXPECT_FALSE(left_out("# a\n\n   \r\n", "a"));
    EXPECT_TRUE(left_out("a   \r\n", "a"));
    EXPECT_TRUE(left_out("\\#a", "#a"));
}

TEST(Exclusions, ClassesFitOneLetter) {
    EXPECT_TRUE(left_out("[a-c]x", "bx"));
    EXPECT_FALSE(left_out("[!a-c]x", "bx"));
    EXPECT_TRUE(left_out("[]]x", "]x"));
    EXPECT_FALSE(left_out("[!a]", "/"));
}

TEST(Exclusions, APatternThatCannotBeUsedIsRefusedByItsLine) {
    for (const char* list : {"a\n[b", "a\n/", "a\n*a*b*c*d*e*f*g*h*i*", "a\n!"}) {
        const auto refused = Exclusions::parse(list);
        ASSERT_FALSE(refused) << list;
        EXPECT_EQ(refused.error().code, Errc::config);
        EXPECT_NE(refused.error().message.find("line 2"), std::string::npos) << refused.error().message;
    }
}

}  // namespace
}  // namespace holdfast::guards::worktree
