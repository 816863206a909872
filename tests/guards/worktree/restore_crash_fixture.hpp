#pragma once

#include "cli/sandbox.hpp"
#include "support/isolation.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <sys/mount.h>

namespace holdfast::cli_test {

using Tree = std::map<std::string, std::string>;

/// Files by path, with their content: those that the exclusion list of the fixture names, or the others.
inline Tree tree_in(const std::filesystem::path& root, bool excluded) {
    Tree tree;
    for (const auto& each : std::filesystem::recursive_directory_iterator(root)) {
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

inline constexpr const char* changing =
    "?write,?pwrite64,?fsync,?syncfs,?rename,?renameat,?renameat2,?unlink,?unlinkat,?mkdirat,?linkat,?fchmod,?"
    "utimensat,?"
    "ftruncate";

/// A repository with a snapshot of `main` that differs from what `main` is now, for commands that are killed.
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
        std::filesystem::remove(repository_ / "main/gone");
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
        if (is_mounted_) mount_worktree();
        std::filesystem::copy(repository_, box_.work,
                              std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    }

    /// The worktree of the copy becomes a mount point, of a folder beside it.
    void mount_worktree() {
        std::filesystem::create_directories(box_.work / "main");
        std::filesystem::create_directory(mounted());
        ASSERT_EQ(mount(mounted().c_str(), (box_.work / "main").c_str(), nullptr, MS_BIND, nullptr), 0);
    }
    [[nodiscard]] std::filesystem::path mounted() const { return box_.root / fmt::format("mounted{}", copies_); }
    void remove_copy() {
        if (is_mounted_) umount2((box_.work / "main").c_str(), MNT_DETACH);
        std::filesystem::remove_all(mounted());
        std::filesystem::remove_all(box_.work);
    }

    /// The calls from the first that names `begin` on. With `only`, those of that name.
    std::vector<Fault> calls_of(const Args& args, const std::string& begin, const std::string& only) {
        work_on_a_copy();
        const std::filesystem::path log = box_.root / "trace";
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
    void kill_at_calls(const Args& args, const std::string& begin, Examine examine, const std::string& only = "",
                       int rounds = 14) {
        std::vector<Fault> calls = calls_of(args, begin, only);
        ASSERT_FALSE(calls.empty());
        std::mt19937_64 random(tests::seed_of(begin));
        std::ranges::shuffle(calls, random);
        calls.resize(std::min(calls.size(), static_cast<std::size_t>(tests::scaled(rounds))));
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
            remove_copy();
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
    bool is_mounted_ = false;
    std::filesystem::path repository_;
    std::string snapshot_;
    const Tree fresh_{{".holdfastignore", "*.log\n/build/\n"}, {"a/one", "1"}, {"b/two", "2"}, {"gone", "g"}};
    int copies_ = 0;
};

}  // namespace holdfast::cli_test
