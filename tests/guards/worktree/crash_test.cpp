// Goal: whatever system call a snapshot dies at, the repository opens, history shows complete snapshots only, and the
// next snapshot works. Method: record the calls of one snapshot with strace, then take it again on a fresh copy, with
// SIGKILL at one call after the other. A slice of them in every run; HOLDFAST_TEST_SCALE makes it larger.
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

constexpr auto watched =
    "trace=?openat,?write,?pwrite64,?fsync,?syncfs,?renameat,?unlinkat,?linkat,?mkdirat,?ftruncate,?fchmod,?utimensat,"
    "?flock,?fcntl,?symlinkat";

constexpr auto as_it_is = fs::copy_options::recursive | fs::copy_options::copy_symlinks;

struct NthCall {
    std::string syscall;
    int number = 0;
};

class SnapshotCrash : public testing::Test {
protected:
    void SetUp() override {
        if (!tests::can_run({"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=none"}))
            GTEST_SKIP() << tests::not_here << "no process may be traced";
        // Without a lease: a dead holder's would have to run out between two crashes. What is published is the same.
        ASSERT_EQ(box_.run({"worktree", "init", "--mode", "shared"}).status, 0);
        box_.write(box_.work / "main/a/one", "one");
        box_.write(box_.work / "main/two", "two");
        fs::create_symlink("two", box_.work / "main/link");
        fs::create_hard_link(box_.work / "main/two", box_.work / "main/zwei");
        ASSERT_EQ(box_.run({"worktree", "snapshot", "-m", "before"}).status, 0);
        box_.write(box_.work / "main/two", "changed");
        fs::copy(box_.work / ".holdfast", box_.root / "original", as_it_is);
    }

    [[nodiscard]] Args traced(const Args& options) const {
        Args args{"/usr/bin/strace", "-f", "-qq"};
        args.insert(args.end(), options.begin(), options.end());
        args.insert(args.end(), {box_.program, "worktree", "snapshot", "-m", "after"});
        return args;
    }

    std::vector<NthCall> calls() {
        const std::string log = (box_.root / "trace").string();
        const Ended ended = box_.run_program(traced({"-o", log, "-e", watched}));
        EXPECT_EQ(ended.status, 0) << ended.err;
        const std::regex entry(R"(^\d+\s+(\w+)\(.*)");
        std::map<std::string, int> counts;
        std::vector<NthCall> found;
        bool has_begun = false;
        std::ifstream lines(log);
        for (std::string line; std::getline(lines, line);) {
            std::smatch match;
            if (!std::regex_match(line, match, entry)) continue;
            const int number = ++counts[match[1]];
            has_begun = has_begun || line.find(".holdfast") != std::string::npos;
            if (has_begun) found.push_back({match[1], number});
        }
        return found;
    }

    void start_again() const {
        std::error_code ignored;
        fs::remove_all(box_.work / ".holdfast", ignored);
        fs::copy(box_.root / "original", box_.work / ".holdfast", as_it_is);
        fs::permissions(box_.work / ".holdfast", fs::perms::owner_all);
    }

    static std::string text_of(const fs::path& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    void expect_whole(const Document& history) const {
        for (std::size_t i = 0; i < history.size("/snapshots"); ++i) {
            const auto at = [&](const char* field) { return history.text(fmt::format("/snapshots/{}/{}", i, field)); };
            const fs::path payload = box_.work / ".holdfast/snapshots" / at("snapshot_id") / "payload";
            EXPECT_EQ(text_of(payload / "a/one"), "one");
            EXPECT_EQ(text_of(payload / "two"), at("message") == "before" ? "two" : "changed");
            EXPECT_EQ(text_of(payload / "zwei"), text_of(payload / "two"));
            EXPECT_TRUE(fs::is_symlink(payload / "link"));
        }
    }

    Sandbox box_;
};

TEST_F(SnapshotCrash, AtAnySystemCallLeavesCompleteSnapshotsOnly) {
    start_again();
    auto all = calls();
    ASSERT_GT(all.size(), 40U);
    std::mt19937_64 random(tests::seed_of("SnapshotCrash"));
    std::ranges::shuffle(all, random);
    all.resize(std::min(all.size(), static_cast<std::size_t>(tests::scaled(10))));
    for (const NthCall& call : all) {
        SCOPED_TRACE(fmt::format("killed at {} #{}", call.syscall, call.number));
        start_again();
        static_cast<void>(box_.run_program(traced(
            {"-o", "/dev/null", "-e", fmt::format("inject={}:signal=KILL:when={}", call.syscall, call.number)})));
        const Ended seen = box_.run({"worktree", "history", "--json"});
        ASSERT_EQ(seen.status, 0) << seen.out;
        const auto left = seen.json().size("/snapshots");
        EXPECT_TRUE(left == 1 || left == 2) << seen.out;
        expect_whole(seen.json());
        const Ended next = box_.run({"worktree", "snapshot", "-m", "after", "--json"});
        ASSERT_EQ(next.status, 0) << next.out;
        const Ended after = box_.run({"worktree", "history", "--json"});
        EXPECT_EQ(after.json().size("/snapshots"), left + 1);
        // Each builds on the one before: none was lost.
        for (std::size_t i = 0; i + 1 < after.json().size("/snapshots"); ++i)
            EXPECT_EQ(after.json().text(fmt::format("/snapshots/{}/parent_id", i)),
                      after.json().text(fmt::format("/snapshots/{}/snapshot_id", i + 1)));
        expect_whole(after.json());
    }
}

TEST_F(SnapshotCrash, EverythingIsOnTheDiskBeforeItIsCalledReady) {
    start_again();
    const std::string log = (box_.root / "trace").string();
    const Ended ended = box_.run_program(traced({"-y", "-o", log, "-e", "trace=?syncfs,?fsync,?renameat,?linkat"}));
    ASSERT_EQ(ended.status, 0) << ended.err;
    std::ifstream lines(log);
    std::vector<std::string> steps;
    for (std::string line; std::getline(lines, line);) {
        const auto has = [&](std::string_view part) { return line.find(part) != std::string::npos; };
        if (has("linkat(") && has("payload")) steps.emplace_back("payload");
        if (has("syncfs(") && has("snapshots/.tmp-")) steps.emplace_back("sync of the payload");
        if (has("renameat(") && has(".READY\"")) steps.emplace_back("READY");
        if (has("renameat(") && has("snapshots>, \".tmp-")) steps.emplace_back("publication");
        if (has("fsync(") && has("/snapshots>")) steps.emplace_back("sync of the publication");
        if (has("renameat(") && has("worktrees.json\"")) steps.emplace_back("head");
    }
    const auto [first, last] = std::ranges::unique(steps);
    steps.erase(first, last);
    EXPECT_THAT(steps, testing::ElementsAre("payload", "sync of the payload", "READY", "publication",
                                            "sync of the publication", "head"));
}

}  // namespace
}  // namespace holdfast::cli_test
