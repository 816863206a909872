// Goal: wherever the program dies while it replaces a worktree or removes snapshots, the worktree is the old tree or
// the new one, what is excluded is as it was, and doctor ends healthy. Method: the calls that change something are
// listed with strace, and the command is repeated on a copy of the repository and killed at one of them. `make test`
// takes some of them; HOLDFAST_TEST_SCALE=20 takes all.
#include "guards/worktree/restore_crash_fixture.hpp"

#include <gmock/gmock.h>

namespace holdfast::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST_F(CrashingRestore, InPlaceLeavesTheOldTreeOrTheNewOneAndWhatIsExcluded) {
    if (!can_trace()) GTEST_SKIP() << tests::not_here << "no process may be traced";
    const Tree old = tree_in(repository_ / "main", false);
    const Tree excluded = tree_in(repository_ / "main", true);
    kill_at_calls({"worktree", "restore", snapshot_, "--inplace"}, "restores", [&] {
        const Tree at_once = tree_in(box_.work / "main", false);
        EXPECT_TRUE(at_once == old || at_once == fresh_) << "never a mixture, at no moment";
        expect_doctor_heals();
        const Tree after = tree_in(box_.work / "main", false);
        EXPECT_TRUE(after == old || after == fresh_);
        EXPECT_EQ(tree_in(box_.work / "main", true), excluded);
        EXPECT_EQ(box_.run({"worktree", "history"}).status, 0);
    });
}

TEST_F(CrashingRestore, PruneLeavesWholeSnapshots) {
    if (!can_trace()) GTEST_SKIP() << tests::not_here << "no process may be traced";
    take();
    put("b/new", "newer");
    const std::string head = take();
    kill_at_calls({"worktree", "prune", "--keep-last", "1"}, "audit.jsonl", [&] {
        expect_doctor_heals();
        const Document history = box_.run({"worktree", "history", "--json"}).json();
        ASSERT_GE(history.size("/snapshots"), 1U);
        for (std::size_t i = 0; i < history.size("/snapshots"); ++i) {
            const std::string id = history.text(fmt::format("/snapshots/{}/snapshot_id", i));
            const Ended restored = box_.run({"worktree", "restore", id, "--to", fmt::format("r{}", i)});
            EXPECT_EQ(restored.status, 0) << restored.err;
        }
        EXPECT_EQ(history.text("/snapshots/0/snapshot_id"), head);
    });
}

TEST_F(CrashingRestore, WhereNamesCannotBeExchangedItTakesTwoStepsAndARecoveryFinishesThem) {
    if (!can_trace()) GTEST_SKIP() << tests::not_here << "no process may be traced";
    const Tree old = tree_in(repository_ / "main", false);
    const Tree excluded = tree_in(repository_ / "main", true);
    const Args restore{"worktree", "restore", snapshot_, "--inplace"};
    weather_ = {"-e", "inject=renameat2:error=EINVAL"};
    kill_at_calls(
        restore, "restores",
        [&] {
            const bool is_there = fs::exists(box_.work / "main");
            const Tree at_once = is_there ? tree_in(box_.work / "main", false) : Tree{};
            EXPECT_TRUE(!is_there || at_once == old || at_once == fresh_);
            expect_doctor_heals();
            const Tree after = tree_in(box_.work / "main", false);
            EXPECT_TRUE(after == old || after == fresh_);
            EXPECT_EQ(tree_in(box_.work / "main", true), excluded);
        },
        "renameat");
    work_on_a_copy();
    EXPECT_EQ(traced({"-o", "/dev/null", "-e", "trace=renameat2", "-e", weather_.back()}, restore).status, 0);
    EXPECT_EQ(tree_in(box_.work / "main", false), fresh_);
    EXPECT_EQ(tree_in(box_.work / "main", true), excluded);
    expect_doctor_heals();
}

TEST_F(CrashingRestore, WhatCannotBeReplacedIsRefusedAndUnchanged) {
    if (!can_trace()) GTEST_SKIP() << tests::not_here << "no process may be traced";
    const Tree old = tree_in(repository_ / "main", false);
    for (const char* error : {"EBUSY", "EXDEV"}) {
        work_on_a_copy();
        const Ended refused =
            traced({"-o", "/dev/null", "-e", "trace=renameat2", "-e", fmt::format("inject=renameat2:error={}", error)},
                   {"worktree", "restore", snapshot_, "--inplace", "--json"});
        EXPECT_EQ(refused.status, 78) << refused.err;
        EXPECT_EQ(refused.code(), "E_STORE_UNSAFE");
        EXPECT_EQ(tree_in(box_.work / "main", false), old);
        expect_doctor_heals();
    }
}

TEST_F(CrashingRestore, TheWordsForWhatIsNotThere) {
    EXPECT_EQ(box_.run({"worktree", "restore", "1763511900123-00000000", "--json"}).status, 79);
    EXPECT_EQ(box_.run({"worktree", "restore", snapshot_, "--worktree", "none", "--json"}).status, 64);
    EXPECT_EQ(box_.run({"worktree", "restore", snapshot_, "../x", "--json"}).status, 64);
    fs::remove(repository_ / ".holdfast/snapshots" / snapshot_ / ".READY");
    const Ended partial = box_.run({"worktree", "restore", snapshot_, "--json"});
    EXPECT_EQ(partial.status, 82);
    EXPECT_EQ(partial.code(), "E_PARTIAL_SNAPSHOT");
    EXPECT_EQ(box_.run({"worktree", "doctor", "--json"}).status, 78);
}

TEST_F(CrashingRestore, AProcessInTheOldTreeIsNamed) {
    Running inside = box_.start_program({"/bin/sh", "-c", "cd main && touch ../inside && exec sleep 600"});
    ASSERT_TRUE(eventually([&] { return fs::exists(repository_ / "inside"); }));
    const Ended done = box_.run({"worktree", "restore", snapshot_, "--inplace", "--json"});
    ASSERT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr(fmt::format("\"{} (", inside.pid())));
    inside.signal(SIGKILL);
}

TEST_F(CrashingRestore, ASharedWorktreeIsReplacedOnlyWhenThatIsSaid) {
    ASSERT_EQ(box_.run({"worktree", "init", "free", "--mode", "shared"}).status, 0);
    box_.write(repository_ / "free/f", "f");
    const std::string id =
        box_.run({"worktree", "snapshot", "--worktree", "free", "--json"}).json().text("/snapshot_id");
    EXPECT_EQ(box_.run({"worktree", "restore", id, "--worktree", "free", "--inplace"}).status, 64);
    EXPECT_EQ(box_.run({"worktree", "restore", id, "--worktree", "free", "--inplace", "--allow-shared"}).status, 0);
}

TEST_F(CrashingRestore, InsideOfRunItJoinsTheLeaseAndOutsideItWaitsForNobody) {
    const Ended joined =
        box_.run({"worktree", "run", "--", box_.program, "worktree", "restore", snapshot_, "--inplace"});
    EXPECT_EQ(joined.status, 0) << joined.err;
    put("a/one", "again");
    Running holder =
        box_.start({"worktree", "run", "--", "sh", "-c", "touch held; while [ ! -e go ]; do sleep 0.05; done"});
    ASSERT_TRUE(eventually([&] { return fs::exists(repository_ / "held"); }));
    const Ended refused = box_.run({"worktree", "restore", snapshot_, "--inplace", "--json"});
    EXPECT_EQ(refused.status, 75);
    EXPECT_EQ(tree_in(repository_ / "main", false).at("a/one"), "again");
    const Ended preview = box_.run({"worktree", "restore", snapshot_, "--inplace", "--dry-run", "--json"});
    EXPECT_EQ(preview.status, 0) << "it changes nothing, and needs no lock";
    EXPECT_EQ(preview.json().text("/changed/0/path"), "a/one");
    box_.write(repository_ / "go", "");
    EXPECT_EQ(holder.wait().status, 0);
}

}  // namespace
}  // namespace holdfast::cli_test
