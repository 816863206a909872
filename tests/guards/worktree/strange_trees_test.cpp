// Goal: what stands in a tree or under it, names, types, times, a disk that is full or has no attributes, is kept or
// refused, and never breaks a repository or a terminal. Method: the command on such trees; file systems are mounted in
// a view of their own, which needs root.
#include "cli/sandbox.hpp"
#include "support/isolation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace holdfast::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class StrangeTree : public testing::Test {
protected:
    void SetUp() override { ASSERT_EQ(box_.run({"worktree", "init"}).status, 0); }

    std::string take() {
        const Ended taken = box_.run({"worktree", "snapshot", "--json"});
        EXPECT_EQ(taken.status, 0) << taken.out;
        return taken.json().text("/snapshot_id");
    }
    [[nodiscard]] fs::path main() const { return box_.work / "main"; }
    /// Runs `work` in a repository whose `.holdfast` is a file system of its own.
    void with_storage(const char* type, const char* options, const std::function<void()>& work) {
        const int status = tests::in_own_mounts([&] {
            // The child's own output goes nowhere, and a failure is told there.
            dup2(STDERR_FILENO, STDOUT_FILENO);
            fs::remove_all(box_.work / ".holdfast");
            fs::create_directory(box_.work / ".holdfast");
            if (mount("none", (box_.work / ".holdfast").c_str(), type, 0, options) != 0) return tests::no_mounts;
            EXPECT_EQ(chmod((box_.work / ".holdfast").c_str(), 0700), 0);
            EXPECT_EQ(box_.run({"worktree", "init"}).status, 0);
            work();
            std::fflush(stdout);
            return HasFailure() ? 1 : 0;
        });
        if (status == tests::no_mounts) GTEST_SKIP() << tests::not_here << "no " << type << " can be mounted";
        EXPECT_EQ(status, 0) << "see above";
    }
    void expect_no_escapes(const Ended& shown, std::size_t lines) {
        EXPECT_THAT(shown.out + shown.err, Not(HasSubstr("\x1b")));
        EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(shown.out, '\n')), lines) << shown.out;
    }

    Sandbox box_;
};

TEST_F(StrangeTree, NoNameReachesTheTerminalAsItIs) {
    const std::string name = "a\n\x1b[31mred\r\x80\xff";
    box_.write(main() / name, "x");
    fs::create_symlink("\x1b]0;title\x07", main() / "link");
    const Ended taken = box_.run({"worktree", "snapshot", "-m", "\x1b[2Jmessage\nsecond line", "--json"});
    ASSERT_EQ(taken.status, 0) << taken.out;
    const std::string id = taken.json().text("/snapshot_id");
    expect_no_escapes(box_.run({"worktree", "ls", id}), 3);
    expect_no_escapes(box_.run({"worktree", "history"}), 1);
    fs::remove(main() / name);
    expect_no_escapes(box_.run({"worktree", "diff", id}), 1);
    expect_no_escapes(box_.run({"worktree", "restore", id, "--inplace", "--dry-run"}), 1);
    EXPECT_EQ(box_.run({"worktree", "diff", id, "--json"}).json().size("/deleted"), 1U);
    ASSERT_EQ(box_.run({"worktree", "restore", id, "--inplace"}).status, 0);
    EXPECT_TRUE(fs::exists(main() / name));
    // A message about it is no way in, either.
    fs::create_directory(main() / (name + "2"));
    ASSERT_EQ(chmod((main() / name).c_str(), 0600), 0);
    std::ofstream(box_.work / ".holdfast/snapshots" / id / "payload" / name) << "other";
    expect_no_escapes(box_.run({"worktree", "doctor", "--strict"}), 2);
}

TEST_F(StrangeTree, PipesSocketsAndTimesBeyondTheCalendarBlockNothing) {
    ASSERT_EQ(mkfifo((main() / "pipe").c_str(), 0622), 0);
    ASSERT_EQ(mknod((main() / "socket").c_str(), S_IFSOCK | 0600, 0), 0);
    box_.write(main() / "old", "x");
    const timespec times[2] = {{0, UTIME_OMIT}, {std::numeric_limits<time_t>::max(), 999'999'999}};
    utimensat(AT_FDCWD, (main() / "old").c_str(), times, 0);
    const std::string id = take();
    EXPECT_EQ(box_.run({"worktree", "ls", id}).status, 0);
    EXPECT_EQ(box_.run({"worktree", "ls", id, "--json"}).json().size("/entries"), 4U);
    const Ended restored = box_.run({"worktree", "restore", id, "--to", "again", "--json"});
    ASSERT_EQ(restored.status, 0) << restored.out;
    EXPECT_TRUE(fs::is_fifo(box_.work / "again/pipe"));
    EXPECT_EQ(restored.json().number("/special"), 1);
}

TEST_F(StrangeTree, ADiskThatIsFullLeavesNothingAndTakesNothing) {
    with_storage("tmpfs", "size=1m", [&] {
        box_.write(main() / "small", "s");
        const std::string first = take();
        box_.write(main() / "large", std::string(2 << 20, 'x'));
        const Ended refused = box_.run({"worktree", "snapshot", "--json"});
        EXPECT_EQ(refused.status, 69) << refused.out;
        EXPECT_EQ(box_.run({"worktree", "doctor", "--strict"}).status, 0) << "nothing is left of it";
        const Document history = box_.run({"worktree", "history", "--json"}).json();
        EXPECT_EQ(history.size("/snapshots"), 1U);
        fs::remove(main() / "large");
        box_.write(main() / "small", "t");
        take();
        EXPECT_EQ(box_.run({"worktree", "restore", first, "--inplace"}).status, 0);
    });
}

TEST_F(StrangeTree, AttributesAreKeptWhereTheStorageHasNone) {
    with_storage("ramfs", nullptr, [&] {
        box_.write(main() / "folder/file", "x");
        for (const char* path : {"folder", "folder/file"})
            if (setxattr((main() / path).c_str(), "user.note", "hello", 5, 0) != 0) return;
        const std::string id = take();
        ASSERT_EQ(box_.run({"worktree", "restore", id, "--to", "again"}).status, 0);
        for (const char* path : {"folder", "folder/file"}) {
            char value[5] = {};
            EXPECT_EQ(getxattr((box_.work / "again" / path).c_str(), "user.note", value, 5), 5) << path;
        }
    });
}

TEST_F(StrangeTree, ARepositoryOfSomebodyElseIsRefused) {
    if (!tests::can_give_away()) GTEST_SKIP() << tests::not_here << "no file can be given to another user";
    constexpr uid_t somebody = 12345;
    ASSERT_EQ(lchown((box_.work / ".holdfast").c_str(), somebody, somebody), 0);
    for (const Args& args : {Args{"worktree", "status", "--json"}, Args{"worktree", "snapshot", "--json"},
                             Args{"worktree", "doctor", "--fix", "--json"}, Args{"worktree", "init", "--json"}}) {
        const Ended refused = box_.run(args);
        EXPECT_EQ(refused.code(), "E_STORE_UNSAFE") << args[1];
    }
}

}  // namespace
}  // namespace holdfast::cli_test
