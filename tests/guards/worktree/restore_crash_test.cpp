// Goal: wherever the program dies while it replaces a worktree or removes snapshots, the worktree is the old tree or
// the new one, what is excluded is as it was, and doctor ends healthy. Method: the calls that change something are
// listed with strace, and the command is repeated on a copy of the repository and killed at one of them. `make test`
// takes some of them; HOLDFAST_TEST_SCALE=20 takes all.
#include "cli/sandbox.hpp"
#include "support/isolation.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <regex>

namespace holdfast::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

using Tree = std::map<std::string, std::string>;

Tree tree_in(const fs::path& root, bool excluded) {
    Tree tree;
    for (const auto& each : fs::recursive_directory_iterator(root)) {
        const std::string path = each.path().lexically_relative(root).string();
        const bool is_excluded = path.ends_with(".log") || path.starts_with("build");
        if (is_excluded != excluded || each.is_directory()) continue;
        std::ifstream file(each.path(), std::ios::binary);
        tree[path] = {std::istreambuf_iterator<char>(file), {}};
    }
    return tree;
}

/// A system call, by its number among those of the same name in its thread.
struct Fault {
    std::string syscall;
    int number = 0;
};

constexpr const char* changing =
    "?write,?pwrite64,?fsync,?syncfs,?rename,?renameat,?renameat2,?unlink,?unlinkat,?mkdirat,?linkat,?fchmod,?"
    "utimensat,?"
    "ftruncate";

class CrashingRestore : public testing::Test {
protected:
    void SetUp() override {
        repository_ = box_.work;
        ASSERT_EQ(box_.run({"worktree", "init"}).status, 0);
        put(".holdfastignore", "*.log\n/build/\n");
        put("a/one", "1");
        put("b/two", "2");
        put("gone", "g");
        snapshot_ = take();
        put("a/one", "changed");
        put("b/new", "n");
        fs::remove(repository_ / "main/gone");
        put("a/x.log", "log");
        put("build/object", "o");
        put("only/here.log", "here");
    }

    void put(const std::string& path, const std::string& text) { box_.write(repository_ / "main" / path, text); }
    std::string take() {
        const Ended taken = box_.run({"worktree", "snapshot", "--json"});
        EXPECT_EQ(taken.status, 0) << taken.err;
        return taken.json().text("/snapshot_id");
    }

    static bool can_trace() { return tests::can_run({"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=none"}); }
    /// What `args` does under strace, in a copy of the repository.
    Ended traced(const Args& options, const Args& args) {
        Args all{"/usr/bin/env", "strace", "-f", "-qq"};
        all.insert(all.end(), options.begin(), options.end());
        all.push_back(box_.program);
        all.insert(all.end(), args.begin(), args.end());
        return box_.run_program(all);
    }
    void work_on_a_copy() {
        box_.work = box_.root / fmt::format("copy{}", ++copies_);
        fs::copy(repository_, box_.work, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    }

    /// The calls from the first that names `begin` on. With `only`, those of that name.
    std::vector<Fault> calls_of(const Args& args, const std::string& begin, const std::string& only) {
        work_on_a_copy();
        const fs::path log = box_.root / "trace";
        Args options{"-y", "-o", log.string(), "-e", fmt::format("trace={}", changing)};
        options.insert(options.end(), weather_.begin(), weather_.end());
        EXPECT_EQ(traced(options, args).status, 0);
        const std::regex entry(R"(^(\d+)\s+(\w+)\(.*)");
        std::map<std::pair<std::string, std::string>, int> counts;
        std::vector<Fault> calls;
        bool begun = false;
        std::ifstream lines(log);
        for (std::string line; std::getline(lines, line);) {
            std::smatch match;
            if (!std::regex_match(line, match, entry)) continue;
            const int number = ++counts[{match[1], match[2]}];
            begun = begun || line.find(begin) != std::string::npos;
            if (begun && (only.empty() || match[2] == only)) calls.push_back({match[2], number});
        }
        return calls;
    }

    /// Kills `args` at some of its calls, and lets `examine` look at what is left.
    template <class Examine>
    void kill_at_calls(const Args& args, const std::string& begin, Examine examine, const std::string& only = "") {
        std::vector<Fault> calls = calls_of(args, begin, only);
        ASSERT_FALSE(calls.empty());
        std::mt19937_64 random(tests::seed_of(begin));
        std::ranges::shuffle(calls, random);
        calls.resize(std::min(calls.size(), static_cast<std::size_t>(tests::scaled(14))));
        int killed = 0;
        for (const Fault& at : calls) {
            SCOPED_TRACE(fmt::format("killed at {} #{}", at.syscall, at.number));
            work_on_a_copy();
            Args options{"-o", "/dev/null",
                         "-e", fmt::format("trace={},renameat2", at.syscall),
                         "-e", fmt::format("inject={}:signal=KILL:when={}", at.syscall, at.number)};
            options.insert(options.end(), weather_.begin(), weather_.end());
            const Ended ended = traced(options, args);
            if (ended.status == 128 + SIGKILL) ++killed;
            examine();
            fs::remove_all(box_.work);
            if (HasFailure()) return;
        }
        fmt::print("killed at {} of {} calls\n", killed, calls.size());
        EXPECT_GT(killed, 0) << "no fault ever struck";
    }

    void expect_doctor_heals() {
        const Ended healed = box_.run({"worktree", "doctor", "--strict", "--fix", "--json"});
        EXPECT_EQ(healed.status, 0) << healed.out << healed.err;
        const Ended healthy = box_.run({"worktree", "doctor", "--strict", "--json"});
        EXPECT_EQ(healthy.status, 0) << healthy.out << healthy.err;
        EXPECT_GT(healthy.json().number("/verified"), 0);
    }

    Sandbox box_;
    Args weather_{};  ///< What else strace does to every call.
    fs::path repository_;
    std::string snapshot_;
    const Tree fresh_{{".holdfastignore", "*.log\n/build/\n"}, {"a/one", "1"}, {"b/two", "2"}, {"gone", "g"}};
    int copies_ = 0;
};

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
