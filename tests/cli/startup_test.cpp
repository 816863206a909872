// Goal: whatever state the caller left the process in, no message goes where it does not belong, and nobody gets rights
// that are not theirs. Method: the real program, started with closed descriptors, small limits, and a setuid bit.
#include "cli/sandbox.hpp"
#include "support/isolation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

namespace holdfast::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Startup : public testing::TestWithParam<std::string> {
protected:
    /// Runs the program with the descriptors 0, 1 and 2 closed.
    [[nodiscard]] Ended run_closed(const Args& args) {
        Args command{"/bin/sh", "-c", "exec \"$0\" \"$@\" <&- >&- 2>&-", box_.program};
        command.insert(command.end(), args.begin(), args.end());
        return box_.run_program(command);
    }

    [[nodiscard]] std::string content(const std::string& name) const {
        std::ifstream file(box_.work / name);
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    }

    Sandbox box_;
};

TEST_P(Startup, NothingOfOursTakesThePlaceOfAClosedStandardDescriptor) {
    // Three numbers that a pipe, a lock or a socket would get, and that messages for people are written to.
    const auto ended = run_closed({"run", "a", "--store", GetParam(), "--", "sh", "-c",
                                   "for fd in 0 1 2; do readlink /proc/$PPID/fd/$fd; done > places"});
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(content("places"), "/\n/\n/\n");
}

TEST_P(Startup, AChildFindsClosedDescriptorsClosed) {
    const auto ended = run_closed({"run", "a", "--store", GetParam(), "--", "sh", "-c",
                                   "for fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] && touch open-$fd; done; touch done"});
    EXPECT_EQ(ended.status, 0);
    EXPECT_TRUE(fs::exists(box_.work / "done"));
    for (const char* name : {"open-0", "open-1", "open-2"}) EXPECT_FALSE(fs::exists(box_.work / name)) << name;
}

TEST_P(Startup, ALeaseIsGivenBackIfStandardOutputIsClosed) {
    EXPECT_EQ(run_closed({"acquire", "a", "--store", GetParam()}).status, 125);
    EXPECT_EQ(box_.run({"acquire", "a", "--store", GetParam()}).status, 0);
}

TEST_P(Startup, AFileSizeLimitIsAnErrorAndNoSignal) {
    const auto ended = box_.run_program(
        {"/usr/bin/prlimit", "--fsize=0:0", box_.program, "acquire", "a", "--store", GetParam(), "--quiet"});
    EXPECT_THAT(ended.status, testing::AnyOf(69, 70)) << "128 + 25 would be SIGXFSZ";
}

TEST_P(Startup, WithFewDescriptorsTheCommandRunsUnderItsLockOrNotAtAll) {
    ASSERT_EQ(box_.run({"init", "--store", GetParam()}).status, 0);
    int ran = 0;
    constexpr std::array limits{3, 4, 6, 8, 9, 10, 12, 14, 18, 24, 32};
    for (const int limit : limits) {
        // The name of the lock, and of the file that the command makes.
        const std::string name = fmt::format("limit-{}", limit);
        const auto ended =
            box_.run_program({"/bin/sh", "-c", fmt::format("ulimit -n {}; exec \"$0\" \"$@\"", limit), box_.program,
                              "run", name, "--store", GetParam(), "--", "/usr/bin/touch", name});
        if (!fs::exists(box_.work / name)) {
            EXPECT_NE(ended.status, 0) << limit;
            continue;
        }
        ++ran;
        const auto history = box_.run({"history", name, "--json", "--store", GetParam()}).json();
        EXPECT_EQ(history.text("/events/0/event"), "acquired") << limit;
    }
    EXPECT_GT(ran, 0);
    EXPECT_LT(ran, std::ssize(limits)) << "no limit was too small, so nothing was tried";
}

INSTANTIATE_TEST_SUITE_P(Stores, Startup, testing::Values("file:locks", "sqlite:locks.db"),
                         [](const auto& each) { return each.param.substr(0, each.param.find(':')); });

/// Runs under the limits of `prlimit`, each with a lock of its own. The command ran under its lock, or it did not run.
void expect_a_lock_or_no_command(Sandbox& box, const Args& wrapper, const std::vector<std::string>& limits) {
    int ran = 0;
    for (const std::string& limit : limits) {
        const std::string name = "limit" + limit.substr(limit.find('='));
        Args args = wrapper;
        args.insert(args.end(),
                    {"/usr/bin/prlimit", limit, box.program, "run", name, "--store",
                     "sqlite:" + (box.work / "locks.db").string(), "--", "/usr/bin/touch", (box.work / name).string()});
        const auto ended = box.run_program(args);
        if (!fs::exists(box.work / name)) {
            EXPECT_NE(ended.status, 0) << limit;
            continue;
        }
        ++ran;
        Args look = wrapper;
        look.insert(look.end(), {box.program, "history", name, "--json", "--store", "sqlite:locks.db"});
        const auto history = box.run_program(look).json();
        EXPECT_EQ(history.text("/events/0/event"), "acquired") << limit;
    }
    EXPECT_GT(ran, 0);
    EXPECT_LT(ran, std::ssize(limits)) << "no limit was too small, so nothing was tried";
}

TEST(StartupLimits, WithLittleMemoryTheCommandRunsUnderItsLockOrNotAtAll) {
    Sandbox box;
    std::vector<std::string> limits;
    for (const int mebibytes : {3, 5, 6, 7, 8, 10, 12, 16, 24, 48, 96})
        limits.push_back(fmt::format("--as={}", mebibytes << 20));
    expect_a_lock_or_no_command(box, {}, limits);
}

// The limit counts all processes of a user, so this one has none yet.
TEST(StartupLimits, WithFewProcessesTheCommandRunsUnderItsLockOrNotAtAll) {
    if (!tests::can_give_away()) GTEST_SKIP() << tests::not_here << "only root can become a user without processes";
    Sandbox box;
    constexpr uid_t lonely = 65301;
    fs::permissions(box.root, fs::perms(0755));
    const fs::path program = box.root / "holdfast";
    fs::copy_file(box.program, program);
    ASSERT_EQ(chown(box.work.c_str(), lonely, lonely), 0);
    box.program = program;
    const Args as_lonely{"/usr/bin/setpriv", "--reuid=65301", "--regid=65301", "--clear-groups"};
    expect_a_lock_or_no_command(box, as_lonely, {"--nproc=1", "--nproc=2", "--nproc=3", "--nproc=4", "--nproc=5"});

    // Nor does a wait that could not begin leave a place in the queue, in which nobody stands.
    const auto as_lonely_with = [&](const Args& limit, const Args& command) {
        Args args = as_lonely;
        args.insert(args.end(), limit.begin(), limit.end());
        args.insert(args.end(), {program, command.front(), "--store", "sqlite:" + (box.work / "locks.db").string()});
        args.insert(args.end(), command.begin() + 1, command.end());
        return box.run_program(args);
    };
    ASSERT_EQ(as_lonely_with({}, {"acquire", "held", "--ttl", "1h"}).status, 0);
    std::set<int> statuses;
    for (const char* limit : {"--nproc=1", "--nproc=2", "--nproc=3"}) {
        Args run{"/usr/bin/prlimit", limit};
        const auto ended = as_lonely_with(run, {"run", "held", "--wait", "50ms", "--json", "--", "/bin/true"});
        statuses.insert(ended.status);
        EXPECT_EQ(as_lonely_with({}, {"status", "held", "--json"}).json().number("/waiters"), 0) << limit << ended.out;
    }
    EXPECT_GT(statuses.size(), 1U) << "all limits were too small, or none was";
}

TEST(StartupLimits, AChildIsEndedByItsFileSizeLimitAsWithoutUs) {
    Sandbox box;
    const auto ended = box.run_program({"/usr/bin/prlimit", "--fsize=100000:100000", box.program, "run", "a", "--store",
                                        "file:locks", "--", "head", "-c", "200000", "/dev/zero"});
    EXPECT_EQ(ended.status, 128 + SIGXFSZ);
}

TEST(StartupRights, ASetuidProgramRefusesToDoAnything) {
    if (!tests::can_give_away())
        GTEST_SKIP() << tests::not_here << "only root can make a program setuid to somebody else";
    Sandbox box;
    struct statvfs mounted{};
    ASSERT_EQ(statvfs(box.root.c_str(), &mounted), 0);
    if ((mounted.f_flag & ST_NOSUID) != 0) GTEST_SKIP() << tests::not_here << "the temporary folder is mounted nosuid";
    const fs::path copy = box.root / "holdfast";
    fs::copy_file(box.program, copy);
    constexpr uid_t nobody = 65534;
    ASSERT_EQ(chown(copy.c_str(), nobody, nobody), 0);
    fs::permissions(copy, fs::perms::set_uid | fs::perms(0755));
    // Everything that it would need to run the command.
    for (const fs::path& folder : {box.root, box.work}) fs::permissions(folder, fs::perms(0777));
    box.program = copy.string();
    const auto ended = box.run({"run", "a", "--store", "file:" + (box.work / "locks").string(), "--", "touch", "ran"});
    EXPECT_EQ(ended.status, 77);
    EXPECT_THAT(ended.err, HasSubstr("setuid"));
    EXPECT_FALSE(fs::exists(box.work / "ran"));
}

class ChosenModules : public testing::Test {
protected:
    /// Asks for a store that is a module, with HOLDFAST_MODULES as given.
    [[nodiscard]] Ended ask(const std::string& folder) {
        box_.program = full_program();
        return box_.run({"status", "a", "--store", "redis://127.0.0.1:1/0"}, {{"HOLDFAST_MODULES", folder}});
    }
    [[nodiscard]] fs::path folder_with_module(fs::perms of_folder, fs::perms of_file) const {
        const fs::path folder = box_.root / "modules";
        const fs::path file = folder / "holdfast-store-redis.so";
        box_.write(file, "not a library");
        fs::permissions(file, of_file);
        fs::permissions(folder, of_folder);
        return folder;
    }

    Sandbox box_;
};

constexpr auto only_the_owner_writes = fs::perms(0755);

TEST_F(ChosenModules, AreTakenFromAFolderThatNobodyElseCanChange) {
    const auto ended = ask(folder_with_module(only_the_owner_writes, only_the_owner_writes));
    EXPECT_THAT(ended.err, HasSubstr("the redis store cannot be loaded")) << "it was tried";
}

TEST_F(ChosenModules, AreNotTakenFromAFolderOrFileThatOthersCanChange) {
    for (const auto& [of_folder, of_file] :
         {std::pair{fs::perms(0757), only_the_owner_writes}, std::pair{only_the_owner_writes, fs::perms(0646)}}) {
        const auto ended = ask(folder_with_module(of_folder, of_file));
        EXPECT_EQ(ended.status, 78);
        EXPECT_THAT(ended.err, HasSubstr("modules"));
    }
}

TEST_F(ChosenModules, OfAnotherUserAreRefused) {
    if (!tests::can_give_away()) GTEST_SKIP() << tests::not_here << "only root can give a folder to somebody else";
    const fs::path folder = folder_with_module(only_the_owner_writes, only_the_owner_writes);
    ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
    EXPECT_EQ(ask(folder).status, 78);
}

TEST_F(ChosenModules, AreNotLookedForBelowTheWorkingFolder) {
    box_.write(box_.work / "modules" / "holdfast-store-redis.so", "not a library");
    EXPECT_EQ(ask("modules").status, 78);
}

}  // namespace
}  // namespace holdfast::cli_test
