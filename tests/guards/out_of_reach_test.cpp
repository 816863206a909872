// Goal: what became another user, by sudo or a setuid program, and so cannot be ended by `run`, is named; the lock is
// kept for it as long as the lease is not lost. Method: as root a setuid program of the test's own, which a user
// without rights runs under a lock.

#include "guards/run_fixture.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sys/statvfs.h>
#include <unistd.h>

namespace holdfast::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RunOutOfReach : public testing::Test {
protected:
    void SetUp() override {
        if (!can_give_away()) GTEST_SKIP() << not_here << "only root can make a program that runs as another user";
        struct statvfs mounted{};
        ASSERT_EQ(statvfs(box_.root.c_str(), &mounted), 0);
        if ((mounted.f_flag & ST_NOSUID) != 0) GTEST_SKIP() << not_here << "the temporary folder is mounted nosuid";
        for (const auto& folder : {box_.root, box_.work})
            std::filesystem::permissions(folder, std::filesystem::perms(0755));
        constexpr uid_t nobody = 65534;
        ASSERT_EQ(chown(box_.work.c_str(), nobody, nobody), 0);
        std::filesystem::copy_file("/bin/sleep", sleeper_);
        std::filesystem::copy_file(box_.program, program_);
        std::filesystem::copy_file("/usr/sbin/chroot", elevated_);
        std::filesystem::permissions(elevated_, std::filesystem::perms::set_uid | std::filesystem::perms(0755));
    }
    void TearDown() override {
        for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
            std::error_code none;
            if (std::filesystem::read_symlink(entry.path() / "exe", none) == sleeper_)
                kill(std::stoi(entry.path().filename()), SIGKILL);
        }
    }
    /// A call of Holdfast by a user without rights.
    [[nodiscard]] Args as_nobody(const Args& args) const {
        return join({"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program_}, args);
    }
    [[nodiscard]] Args run(const Args& flags, const Args& command) const {
        const Args line{"run", "a", "--store", store_, "--ttl", "600ms", "--grace", "100ms"};
        return as_nobody(join(join(join(line, flags), {"--"}), command));
    }
    /// `command` as root.
    [[nodiscard]] Args as_root(const Args& command) const { return join({elevated_, "--userspec=0:0", "/"}, command); }
    static Args join(Args first, const Args& second) {
        first.insert(first.end(), second.begin(), second.end());
        return first;
    }

    cli_test::Sandbox box_;
    const std::string store_ = "file:" + (box_.work / "locks").string();
    const std::string program_ = box_.root / "holdfast";
    const std::string elevated_ = box_.root / "elevated";
    // Its name is what `ps` shows of it, and whoever starts it chooses that.
    const std::string sleeper_ = box_.root / "s\x1b[2J\u202e";
};

TEST_F(RunOutOfReach, WhatRunsAsAnotherUserIsNamedAtOnceAndNotCalledStopped) {
    // The lease of the first is left to run out.
    const Args flags{"--max-hold", "600ms", "--wait", "30s"};
    const auto ended = box_.run_program(run(flags, as_root({sleeper_, "300"})));
    EXPECT_EQ(ended.status, 76) << ended.err;
    const auto named = ended.err.find("cannot end s");
    ASSERT_NE(named, std::string::npos) << ended.err;
    EXPECT_EQ(ended.err.find("cannot end s", named + 1), std::string::npos) << "once is enough: " << ended.err;
    EXPECT_THAT(ended.err, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\u202e")))) << "a terminal would obey it";
    EXPECT_THAT(ended.err, AllOf(HasSubstr("could not be stopped"), HasSubstr("as long as max_hold allows")));
    EXPECT_THAT(ended.err, AllOf(Not(HasSubstr("the command was stopped")), Not(HasSubstr("was not started"))));

    // What outlives a command that could be ended is named, and not waited for.
    const auto left = box_.run_program(
        run(flags, {"/bin/sh", "-c", "'" + elevated_ + "' --userspec=0:0 / '" + sleeper_ + "' 30 & wait"}));
    EXPECT_EQ(left.status, 76) << left.err;
    // Before that it said whose lease it waited for.
    const auto number = left.err.find("(pid ", left.err.find("cannot end s"));
    ASSERT_NE(number, std::string::npos) << left.err;
    EXPECT_EQ(kill(std::stoi(left.err.substr(number + 5)), SIGKILL), 0) << "it was waited for";
}

// Mounted with hidepid, /proc shows nobody the processes of other users.
TEST_F(RunOutOfReach, WhatProcHidesIsNotWaitedForEither) {
    const Args commands[] = {as_root({sleeper_, "300"}),
                             {"/bin/sh", "-c", "'" + elevated_ + "' --userspec=0:0 / '" + sleeper_ + "' 300 & wait"}};
    for (const Args& command : commands) {
        const Args hidden{"/usr/bin/unshare",
                          "--mount",
                          "/bin/sh",
                          "-c",
                          "mount -t proc -o hidepid=2 proc /proc 2>/dev/null || exit 96; exec \"$@\"",
                          "sh"};
        const auto ended = box_.run_program(join(hidden, run({"--max-hold", "600ms", "--wait", "30s"}, command)));
        if (ended.status == 96) GTEST_SKIP() << not_here << "/proc cannot be mounted anew";
        EXPECT_EQ(ended.status, 76) << ended.err;
        EXPECT_THAT(ended.err, AllOf(HasSubstr("still running: processes of another user, which /proc hides"),
                                     HasSubstr("as long as max_hold allows"), Not(HasSubstr("was not started"))));
    }
}

TEST_F(RunOutOfReach, WhatRunsAsAnotherUserKeepsTheLockWhenTheOuterProcessIsKilled) {
    const std::string began = box_.work / "began";
    const std::string ended = box_.work / "ended";
    // The command itself can be ended.
    const std::string helper = box_.work / "helper";
    std::ofstream(helper) << ": >" + began + "; sleep 2; : >" + ended;
    const std::string script = "'" + elevated_ + "' --userspec=0:0 / /bin/sh '" + helper + "' & wait";
    Running running = box_.start_program(run({}, {"/bin/sh", "-c", script}));
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(began); })) << running.err();
    running.signal(SIGKILL);
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(ended); }));
    const Args history = as_nobody({"history", "a", "--store", store_});
    EXPECT_TRUE(eventually([&] { return box_.run_program(history).out.contains("released"); }))
        << "it was left to run out meanwhile";
}

}  // namespace
}  // namespace holdfast::tests
