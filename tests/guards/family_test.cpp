// Goal: no process that the command started works on without the lock, whoever started it and whatever it is deaf to,
// and nobody else's process is taken for one. Method: children that leave others behind, with and without a loss.

#include "guards/run_fixture.hpp"
#include "support/matchers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace holdfast::tests {
namespace {

using cli_test::Ended;

class RunFamily : public RunFixture {
protected:
    static std::set<pid_t> children_of(pid_t parent) {
        const std::string pid = std::to_string(parent);
        std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
        std::set<pid_t> children;
        for (pid_t child = 0; file >> child;) children.insert(child);
        return children;
    }
    /// The number that a script writes into `file`; 0 if it does not.
    [[nodiscard]] pid_t pid_in(const std::string& file) const {
        pid_t pid = 0;
        static_cast<void>(eventually([&] {
            std::ifstream(box_.work / file) >> pid;
            return pid > 0;
        }));
        return pid;
    }
    /// An operator takes `name` away.
    void take_away(const LockName& name) {
        const auto store = must(open_store("file:" + store_folder_.string()));
        const auto held = must(store->inspect(name, soon()));
        must(store->apply_one(Break{name, held.lease->lock_id, "operator", "stuck"}, soon()));
    }
    /// A loss is noticed soon, and long before the lease would end.
    void renew_often() {
        box_.write(box_.work / "holdfast.toml", "[[policy]]\nmatch = \"*/*\"\nrenew_interval = \"100ms\"\n");
    }
};

TEST_F(RunFamily, AProcessThatLeftTheSessionKeepsTheLockAndIsNamed) {
    const Ended ended = start({"leave"}, {"--json", "--grace", "100ms"}).wait();
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.json().size("/left_over"), 1U);
    EXPECT_NE(look().state, LockState::free) << "given back while a process of the command works";
    for (const pid_t pid : roster()) kill(pid, SIGKILL);
}

TEST_F(RunFamily, ASignalReachesWhatTheCommandLeftRunning) {
    Running running = start({"background"}, {"--json", "--ttl", "1m", "--grace", "25s"});
    await_roster(1);
    const pid_t left = *roster().begin();
    // The watchdog is the other one. The command has ended and was waited for.
    ASSERT_TRUE(eventually([&] {
        const auto now = children_of(running.pid());
        return now.size() == 2 && now.contains(left);
    }));
    running.signal(SIGTERM);
    const Ended ended = running.wait();
    EXPECT_EQ(ended.json().size("/left_over"), 0U) << ended.out;
    EXPECT_EQ(look().state, LockState::free);
    EXPECT_FALSE(is_alive(left));
    if (is_alive(left)) kill(left, SIGKILL);
}

// Without an environment a process has no mark, and its group is all by which the watchdog can know it.
TEST_F(RunFamily, TheWatchdogEndsWhatTheCommandLeftInItsGroupWithoutAnEnvironment) {
    const std::string left_behind =
        "trap \": >heard\" USR1; echo $$ >left; i=0; while [ $i -lt 5000 ]; do sleep .02; i=$((i+1)); done";
    Running running = box_.start({"run", "--store", "file:" + store_folder_.string(), "--ttl", "1m", "--grace", "25s",
                                  name_.text(), "--", "/bin/sh", "-c",
                                  "env -i /bin/sh -c '" + left_behind + "' >/dev/null 2>&1 & echo $$ >command"});
    const pid_t command = pid_in("command");
    const pid_t left = pid_in("left");
    ASSERT_GT(command, 1);
    ASSERT_GT(left, 1);
    ASSERT_TRUE(eventually([&] { return state_of(command) == 'X'; })) << "the command was not waited for";
    // A signal that is passed on now comes from a supervisor that waits for the rest.
    running.signal(SIGUSR1);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(box_.work / "heard"); }));
    running.signal(SIGKILL);
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
    EXPECT_TRUE(eventually([&] { return !is_alive(left); })) << "it works on without anybody to renew the lease";
    if (is_alive(left)) kill(left, SIGKILL);
}

TEST_F(RunFamily, AfterALossADeafProcessInASessionOfItsOwnDiesWithTheCommandThatObeyed) {
    Running running = start_and_await({"heir"}, 2);
    take_away(name_);
    EXPECT_EQ(running.wait().status, 76);
    EXPECT_FALSE(anybody_alive());
}

TEST_F(RunFamily, TheWatchdogEndsADeafProcessInASessionOfItsOwnThatOutlivedTheCommand) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    Running running = start_and_await({"heir"}, 2);
    running.signal(SIGKILL);
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
    // Waited for at once, as by an init that does its work: until then the command would still be a group.
    EXPECT_TRUE(eventually([&] {
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        return !anybody_alive();
    }));
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    expect_that_nobody_outlived_the_lease();
}

TEST_F(RunFamily, ADeafCommandIsKilledAfterItsGraceAndNotWhenTheLeaseWouldHaveEnded) {
    renew_often();
    Running running = start({"ignore"}, {"--json", "--ttl", "40s", "--grace", "100ms"});
    await_roster(1);
    take_away(name_);
    const Ended ended = running.wait();
    EXPECT_EQ(ended.status, 76);
    // So much of the lease was left. Killed at its end, there would be 50 ms.
    EXPECT_GT(ended.json().number("/margin_ms"), 1000);
}

TEST_F(RunFamily, TheLossOfTheSecondOfTwoLocksEndsTheCommandAndIsTheReason) {
    renew_often();
    Running running = start({"obey"}, {"--json", "--ttl", "3s", "--and", "z/last"});
    await_roster(1);
    take_away(must(LockName::parse("z/last")));
    const Ended ended = running.wait();
    EXPECT_EQ(ended.status, 76);
    EXPECT_EQ(ended.code(), "E_LOCK_NOT_HELD") << ended.out;
    EXPECT_THAT(ended.json().text("/error/message"), testing::HasSubstr("z/last was taken away by operator"));
    EXPECT_EQ(look().state, LockState::free) << "the first is given back";
}

TEST_F(RunFamily, ProcessesOfTheCallerAreNeitherWaitedForNorEnded) {
    Args args{"/bin/sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $! >stranger; exec \"$0\" \"$@\"", box_.program};
    const Args run = command({"obey"}, {"--json", "--max-hold", "500ms"});
    args.insert(args.end(), run.begin(), run.end());
    const Ended lost = box_.run_program(args);
    EXPECT_EQ(lost.status, 76) << lost.err;
    pid_t stranger = 0;
    std::ifstream(box_.work / "stranger") >> stranger;
    ASSERT_GT(stranger, 1);
    EXPECT_TRUE(is_alive(stranger));
    if (is_alive(stranger)) kill(stranger, SIGKILL);
}

}  // namespace
}  // namespace holdfast::tests
