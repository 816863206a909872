// Goal: a worktree that is a mount point, or on another file system than `.holdfast`, is restored as any other: the old
// tree or the new one, and what is excluded as it was. Method: real mounts in a view of their own, which needs root;
// the restore is killed at its calls, and its mounts come and go.
#include "guards/worktree/restore_crash_fixture.hpp"

#include <gmock/gmock.h>

#include <cstdio>
#include <functional>
#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MountedRestore : public CrashingRestore {
protected:
    /// Runs `work` where mounts are its own. A failure in it is one of the test.
    void with_mounts(const std::function<void()>& work) {
        is_mounted_ = true;
        const int status = tests::in_own_mounts([&] {
            // The child's own output goes nowhere, and a failure is told there.
            dup2(STDERR_FILENO, STDOUT_FILENO);
            const fs::path probe = box_.root / "probe";
            fs::create_directory(probe);
            if (mount("none", probe.c_str(), "tmpfs", 0, nullptr) != 0) return tests::no_mounts;
            work();
            std::fflush(stdout);
            return HasFailure() ? 1 : 0;
        });
        if (status == tests::no_mounts) GTEST_SKIP() << tests::not_here << "nothing can be mounted";
        EXPECT_EQ(status, 0) << "see above";
    }
    void mount_memory(const fs::path& at) {
        fs::create_directories(at);
        ASSERT_EQ(mount("none", at.c_str(), "tmpfs", 0, "mode=0700"), 0);
    }
    [[nodiscard]] fs::path main() const { return box_.work / "main"; }
    static std::uint64_t inode_of(const fs::path& path) {
        struct stat facts{};
        return lstat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
    }
    void expect_nothing_left() {
        expect_doctor_heals();
        for (const fs::path& folder : {box_.work, main()})
            for (const auto& each : fs::directory_iterator(folder))
                EXPECT_THAT(each.path().filename().string(), testing::Not(HasSubstr(".holdfast-"))) << folder;
    }
    [[nodiscard]] Args restore() const { return {"worktree", "restore", snapshot_, "--inplace", "--json"}; }
};

TEST_F(MountedRestore, AMountPointGetsTheTreeAndItsExcludedMountStays) {
    with_mounts([&] {
        work_on_a_copy();
        mount_memory(main() / "build/mounted");
        mount_memory(main() / "memory.log");
        box_.write(main() / "memory.log/held.log", "held");
        chmod(main().c_str(), 0711);
        const auto root = inode_of(main());
        const auto log = inode_of(main() / "a/x.log");
        const Tree before = tree_in(main(), false);
        const Tree excluded = tree_in(main(), true);
        const Ended done = box_.run(restore());
        ASSERT_EQ(done.status, 0) << done.err << done.out;
        EXPECT_EQ(tree_in(main(), false), fresh_);
        EXPECT_EQ(tree_in(main(), true), excluded);
        EXPECT_EQ(inode_of(main()), root);
        EXPECT_EQ(inode_of(main() / "a/x.log"), log);
        EXPECT_NE(fs::status(main()).permissions(), fs::perms(0711))
            << "the folder itself is that of the snapshot, too";
        expect_nothing_left();
        const Ended back = box_.run({"worktree", "restore", done.json().text("/undo_snapshot_id"), "--inplace"});
        ASSERT_EQ(back.status, 0) << back.err;
        EXPECT_EQ(tree_in(main(), false), before);
        EXPECT_EQ(tree_in(main(), true), excluded);
    });
}

TEST_F(MountedRestore, OnePathOfAMountPointIsExchangedInIt) {
    with_mounts([&] {
        work_on_a_copy();
        const Ended done = box_.run({"worktree", "restore", snapshot_, "a/one", "--inplace"});
        ASSERT_EQ(done.status, 0) << done.err;
        Tree expected = tree_in(repository_ / "main", false);
        expected["a/one"] = "1";
        EXPECT_EQ(tree_in(main(), false), expected);
        expect_nothing_left();
    });
}

TEST_F(MountedRestore, AnotherFileSystemIsRestoredInPlaceAndAsANewWorktree) {
    with_mounts([&] {
        is_mounted_ = false;
        box_.work = box_.root / "elsewhere";
        fs::create_directory(box_.work);
        mount_memory(box_.work / ".holdfast");
        ASSERT_EQ(box_.run({"worktree", "init"}).status, 0);
        box_.write(main() / "a/one", "1");
        const std::string first = take();
        box_.write(main() / "a/one", "2");
        for (const Args& args :
             {Args{"worktree", "restore", first, "--inplace"}, Args{"worktree", "restore", first, "--to", "again"}}) {
            const Ended done = box_.run(args);
            ASSERT_EQ(done.status, 0) << done.err;
        }
        EXPECT_EQ(tree_in(main(), false), (Tree{{"a/one", "1"}}));
        EXPECT_EQ(tree_in(box_.work / "again", false), (Tree{{"a/one", "1"}}));
        mount_memory(main());
        box_.write(main() / "b", "b");
        const Ended done = box_.run({"worktree", "restore", first, "--inplace"});
        ASSERT_EQ(done.status, 0) << done.err;
        EXPECT_EQ(tree_in(main(), false), (Tree{{"a/one", "1"}}));
        expect_nothing_left();
    });
}

TEST_F(MountedRestore, ANameThatCannotBeMovedTakesEverythingBack) {
    if (!can_trace()) GTEST_SKIP() << tests::not_here << "no process may be traced";
    with_mounts([&] {
        const Tree old = tree_in(repository_ / "main", false);
        const Tree excluded = tree_in(repository_ / "main", true);
        // .holdfastignore, a, b, gone: whichever it is.
        for (int number = 1; number <= 4; ++number) {
            work_on_a_copy();
            const auto refused = traced({"-o", "/dev/null", "-e", "trace=renameat2", "-e",
                                         fmt::format("inject=renameat2:error=EPERM:when={}", number)},
                                        restore());
            EXPECT_NE(refused.status, 0) << number;
            EXPECT_EQ(tree_in(main(), false), old) << number;
            EXPECT_EQ(tree_in(main(), true), excluded) << number;
            expect_nothing_left();
            remove_copy();
        }
    });
}

TEST_F(MountedRestore, KilledAnywhereIsTheOldTreeOrTheNewOneAfterTheNextHolder) {
    if (!can_trace()) GTEST_SKIP() << tests::not_here << "no process may be traced";
    with_mounts([&] {
        const Tree old = tree_in(repository_ / "main", false);
        const Tree excluded = tree_in(repository_ / "main", true);
        for (const bool has_exchange : {true, false}) {
            weather_ = has_exchange ? Args{} : Args{"-e", "inject=renameat2:error=EINVAL"};
            kill_at_calls(
                restore(), "restores",
                [&] {
                    expect_nothing_left();
                    const Tree after = tree_in(main(), false);
                    EXPECT_TRUE(after == old || after == fresh_);
                    EXPECT_EQ(tree_in(main(), true), excluded);
                },
                has_exchange ? "" : "renameat", 6);
        }
    });
}

TEST_F(MountedRestore, WhatWasBegunWaitsForItsMount) {
    if (!can_trace()) GTEST_SKIP() << tests::not_here << "no process may be traced";
    with_mounts([&] {
        work_on_a_copy();
        const Tree excluded = tree_in(main(), true);
        static_cast<void>(traced(
            {"-o", "/dev/null", "-e", "trace=renameat2", "-e", "inject=renameat2:signal=KILL:when=2"}, restore()));
        ASSERT_EQ(umount2(main().c_str(), MNT_DETACH), 0);
        const Ended refused = box_.run({"worktree", "doctor", "--fix", "--json"});
        EXPECT_EQ(refused.code(), "E_STORE_UNAVAILABLE") << refused.out;
        ASSERT_EQ(mount(mounted().c_str(), main().c_str(), nullptr, MS_BIND, nullptr), 0);
        expect_nothing_left();
        EXPECT_EQ(tree_in(main(), false), fresh_);
        EXPECT_EQ(tree_in(main(), true), excluded);
    });
}

}  // namespace
}  // namespace holdfast::cli_test
