// Goal: a walk tells everything in a tree once, in the order of manifests, and is led nowhere else.
#include "guards/worktree/walker.hpp"

#include "guards/worktree/files.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace holdfast::guards::worktree {
namespace {

namespace fs = std::filesystem;

class Walk : public testing::Test {
protected:
    void write(const std::string& path, std::string_view text = "x") {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text;
    }

    Result<std::vector<Found>> walk(const Exclusions* exclusions = nullptr) {
        const auto fd = open_folder(root_.string());
        Walker walker(fd->get(), {.exclusions = exclusions});
        std::vector<Found> all;
        for (;;) {
            auto next = walker.next();
            if (!next) return std::unexpected(next.error());
            if (!*next) break;
            all.push_back(**next);
        }
        excluded_ = walker.excluded();
        return all;
    }

    std::string paths(const Exclusions* exclusions = nullptr) {
        const auto all = walk(exclusions);
        if (!all) return all.error().message;
        std::string text;
        for (const Found& found : *all)
            text += std::string(1, static_cast<char>(found.entry.kind)) + ":" + found.entry.path + " ";
        return text;
    }

    tests::TempFolder folder_;
    fs::path root_ = folder_.path();
    std::uint64_t excluded_ = 0;
};

TEST_F(Walk, TellsEachThingOnceAndInOrder) {
    write("b");
    write("a/z");
    write("a/b/c");
    write("a.txt");
    fs::create_symlink("/etc/passwd", root_ / "l");
    mkfifo((root_ / "p").c_str(), 0600);
    EXPECT_EQ(paths(), "d: d:a d:a/b f:a/b/c f:a/z f:a.txt f:b l:l p:p ");
}

TEST_F(Walk, FollowsNoLink) {
    const tests::TempFolder outside;
    std::ofstream(outside.path() / "secret") << "x";
    fs::create_directory_symlink(outside.path(), root_ / "link");
    EXPECT_EQ(paths(), "d: l:link ");
}

TEST_F(Walk, LeavesOutWhatTheListSaysAndRemembersWhere) {
    write("keep/a");
    write("keep/a.log");
    write("drop/inner/a");
    write("cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
    write("cache/a");
    write("fake/CACHEDIR.TAG", "something");
    const auto exclusions = Exclusions::parse("*.log\n/drop/\n");
    const auto all = walk(&*exclusions);
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_EQ(paths(&*exclusions), "d: d:fake f:fake/CACHEDIR.TAG d:keep f:keep/a ");
    EXPECT_EQ(excluded_, 3U);
    for (const Found& found : *all)
        EXPECT_EQ(found.entry.hides_others, found.entry.path.empty() || found.entry.path == "keep") << found.entry.path;
}

TEST_F(Walk, KnowsSocketsAndNamesOfOneFile) {
    write("a");
    fs::create_hard_link(root_ / "a", root_ / "b");
    const base::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = (root_ / "s").string();
    ASSERT_LT(path.size(), sizeof address.sun_path);
    std::ranges::copy(path, address.sun_path);
    ASSERT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const auto all = walk();
    ASSERT_TRUE(all);
    ASSERT_EQ(all->size(), 4U);
    EXPECT_EQ((*all)[1].names, 2U);
    EXPECT_EQ((*all)[1].entry.identity.inode, (*all)[2].entry.identity.inode);
    EXPECT_EQ((*all)[3].entry.kind, Kind::socket);
}

TEST_F(Walk, AFolderThatVanishesIsAChangeUnlessItMay) {
    write("a/x");
    write("b/x");
    const auto fd = open_folder(root_.string());
    for (const bool may : {false, true}) {
        write("b/x");
        Walker walker(fd->get(), {.may_move = may});
        ASSERT_TRUE(walker.next());  // The root, which has been listed now.
        fs::remove_all(root_ / "b");
        ASSERT_TRUE(walker.next());
        ASSERT_TRUE(walker.next());
        const auto next = walker.next();
        ASSERT_EQ(next.has_value(), may);
        if (next) {
            EXPECT_FALSE(*next);
        } else {
            EXPECT_EQ(next.error().code, Errc::consistency_unavailable);
        }
    }
}

TEST(Beneath, NoStepLeadsUpOrThroughALink) {
    const tests::TempFolder folder;
    fs::create_directories(folder.path() / "a/b");
    fs::create_directory_symlink("/", folder.path() / "out");
    const auto root = open_folder(folder.path().string());
    EXPECT_TRUE(open_beneath(root->get(), "a/b"));
    EXPECT_TRUE(open_beneath(root->get(), ""));
    for (const char* path : {"..", "a/..", "a/../a", "out", "out/etc", "a//b", "/a"})
        EXPECT_FALSE(open_beneath(root->get(), path)) << path;
}

TEST(RemoveTree, RemovesLinksAndNotWhatTheyPointTo) {
    const tests::TempFolder folder;
    const tests::TempFolder outside;
    std::ofstream(outside.path() / "kept") << "x";
    fs::create_directories(folder.path() / "t/shut");
    std::ofstream(folder.path() / "t/shut/x") << "x";
    fs::create_directory_symlink(outside.path(), folder.path() / "t/out");
    chmod((folder.path() / "t/shut").c_str(), 0);
    const auto root = open_folder(folder.path().string());
    const auto removed = remove_tree(root->get(), "t");
    ASSERT_TRUE(removed) << removed.error().message;
    EXPECT_FALSE(fs::exists(folder.path() / "t"));
    EXPECT_TRUE(fs::exists(outside.path() / "kept"));
    EXPECT_TRUE(remove_tree(root->get(), "t"));
}

}  // namespace
}  // namespace holdfast::guards::worktree
