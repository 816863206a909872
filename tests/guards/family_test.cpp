// Goal: no process that the command started works on without the lock, whoever started it and whatever it is deaf to,
// and nobody else's process is taken for one. Method: children that leave others behind, with and without a loss.

#include "guards/run_fixture.hpp"
#include "support/matchers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

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
    Running running = start({"leave"}, {"--grace", "100ms"});
    await_roster(1);
    const pid_t left = *roster().begin();
    ASSERT_TRUE(eventually([&] {
        return running.err().contains("still running: subject (pid " + std::to_string(left));
    })) << running.err();
    EXPECT_THAT(running.err(), testing::HasSubstr("--leave-behind"));
    const auto renewed = look().lease->renew_seq;
    EXPECT_TRUE(eventually([&] { return look().lease->renew_seq > renewed + 3; }));
    EXPECT_TRUE(is_alive(left));
    kill(left, SIGKILL);
    EXPECT_EQ(running.wait().status, 0);
    EXPECT_EQ(look().state, LockState::free);
}

// A log collector that hangs, or `2>&1 | less`: what the command left running is named, and nobody reads it.
TEST_F(RunFamily, AFullStandardErrorThatNobodyReadsStopsNeitherRenewalsNorSignals) {
    Args args{"/bin/sh", "-c",
              "mkfifo full && exec 3<>full && { dd if=/dev/zero of=full bs=4096 oflag=nonblock 2>/dev/null || :; } && "
              "exec \"$@\" 2>&3",
              "sh", box_.program};
    const Args run = command({"leave"});
    args.insert(args.end(), run.begin(), run.end());
    Running running = box_.start_program(args);
    await_roster(1);
    const pid_t left = *roster().begin();
    const auto renewed = look().lease->renew_seq;
    EXPECT_TRUE(eventually([&] { return !is_alive(left) || look().lease->renew_seq > renewed + 12; }));
    EXPECT_TRUE(is_alive(left)) << "it was ended although the lease could be renewed";
    kill(running.pid(), SIGTERM);
    EXPECT_TRUE(eventually([&] { return !is_alive(left); })) << "the signal reached nobody";
    EXPECT_TRUE(eventually([&] { return look().state == LockState::free; }));
}

TEST_F(RunFamily, AProcessThatIsLeftBehindOnPurposeKeepsTheLockUntilItRunsOut) {
    const Ended ended = start({"leave"}, {"--json", "--grace", "100ms", "--leave-behind"}).wait();
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.json().size("/left_over"), 1U);
    EXPECT_NE(look().state, LockState::free) << "given back while a process of the command works";
    EXPECT_TRUE(anybody_alive());
    for (const pid_t pid : roster()) kill(pid, SIGKILL);
}

TEST_F(RunFamily, ASignalReachesWhatTheCommandLeftRunning) {
    Running running = start({"background"}, {"--json", "--ttl", "1m", "--grace", "25s"});
    await_roster(1);
    const pid_t left = *roster().begin();
    // The command has ended and was waited for.
    ASSERT_TRUE(eventually([&] { return children_of(inner_of(running)) == std::set{left}; }));
    running.signal(SIGTERM);
    const Ended ended = running.wait();
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.json().size("/left_over"), 0U) << ended.out;
    EXPECT_EQ(look().state, LockState::free);
    EXPECT_FALSE(is_alive(left));
    if (is_alive(left)) kill(left, SIGKILL);
}

// By nothing but its descent it can be known.
TEST_F(RunFamily, EitherProcessEndsWhatTheCommandLeftInASessionOfItsOwnWithoutAnEnvironment) {
    for (const bool kills_outer : {true, false}) {
        SCOPED_TRACE(kills_outer ? "the outer process is killed" : "the inner process is killed");
        for (const char* file : {"left", "heard"}) std::filesystem::remove(box_.work / file);
        const std::string left_behind =
            "trap \": >heard\" USR1; echo $$ >left; i=0; while [ $i -lt 5000 ]; do sleep .02; i=$((i+1)); done";
        Running running = box_.start({"run", "--store", "file:" + store_folder_.string(), "--ttl", "1m", "--wait",
                                      "60s", "--grace", "10s", kills_outer ? name_.text() : "other", "--", "/bin/sh",
                                      "-c", "setsid env -i /bin/sh -c '" + left_behind + "' >/dev/null 2>&1 &"});
        const pid_t left = pid_in("left");
        ASSERT_GT(left, 1);
        // A signal that reaches it now comes from an inner process that waits for the rest.
        ASSERT_TRUE(eventually([&] {
            running.signal(SIGUSR1);
            return std::filesystem::exists(box_.work / "heard");
        }));
        kill(kills_outer ? running.pid() : inner_of(running), SIGKILL);
        EXPECT_EQ(running.wait().status, kills_outer ? 128 + SIGKILL : 76);
        EXPECT_TRUE(eventually([&] { return !is_alive(left); })) << "it works on without anybody to renew the lease";
        if (is_alive(left)) kill(left, SIGKILL);
    }
}

TEST_F(RunFamily, AfterALossADeafProcessInASessionOfItsOwnDiesWithTheCommandThatObeyed) {
    Running running = start_and_await({"heir"}, 2);
    take_away(name_);
    EXPECT_EQ(running.wait().status, 76);
    EXPECT_FALSE(anybody_alive());
}

TEST_F(RunFamily, WhenTheOuterProcessIsKilledTheLockIsKeptUntilADeafProcessInASessionOfItsOwnIsDead) {
    Running running = start({"heir"}, {"--ttl", "1m", "--grace", "500ms"});
    await_roster(2);
    running.signal(SIGKILL);
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
    const auto store = must(open_store("file:" + store_folder_.string()));
    EXPECT_TRUE(eventually([&] { return must(store->inspect(name_, soon())).state == LockState::free; }));
    EXPECT_FALSE(anybody_alive()) << "released while somebody worked";
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

// The inner process was stopped, and goes on just after the outer one has ended the command for it.
TEST_F(RunFamily, ACommandThatTheOuterProcessEndedIsALossForTheInnerOneToo) {
    Running running = start({"obey"}, {"--grace", "500ms"});
    await_roster(1);
    const pid_t command = *roster().begin();
    const pid_t inner = inner_of(running);
    kill(inner, SIGSTOP);
    EXPECT_TRUE(eventually([&] { return !is_alive(command); }));
    kill(inner, SIGCONT);
    const auto ended = running.wait();
    EXPECT_EQ(ended.status, 76) << ended.err;
    EXPECT_THAT(ended.err, testing::HasSubstr("holdfast was stopped for too long to renew the lease in time"));
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
