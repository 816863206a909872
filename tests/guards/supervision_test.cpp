// Goal: a command that was stopped hears that it is to end, a signal that the caller ignores stays ignored, and the
// last word of `holdfast run` is the true one. Method: the program with real children, which are stopped, cut off from
// their store, or killed at a bad moment together with a process of `run`.

#include "guards/run_fixture.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct SignalCase {
    int signal;
    const char* name;
};
constexpr std::array stop_signals{SignalCase{SIGTERM, "TERM"}, SignalCase{SIGINT, "INT"}, SignalCase{SIGHUP, "HUP"},
                                  SignalCase{SIGQUIT, "QUIT"}};
constexpr auto name_of_case = [](const auto& test) { return test.param.name; };

class RunStopped : public RunFixture, public testing::WithParamInterface<SignalCase> {
protected:
    void await_stop() {
        ASSERT_TRUE(eventually([&] {
            return std::ranges::any_of(roster(), [](pid_t pid) { return state_of(pid) == 'T'; });
        })) << "the child was not stopped";
    }
};

TEST_P(RunStopped, AStoppedChildHearsThatItIsToEnd) {
    Running running = start_and_await({"stopped", std::to_string(SIGSTOP)}, 1);
    await_stop();
    running.signal(GetParam().signal);
    EXPECT_EQ(running.wait().status, 128 + GetParam().signal);
    EXPECT_EQ(look().state, LockState::free);
}

INSTANTIATE_TEST_SUITE_P(Signal, RunStopped, testing::ValuesIn(stop_signals), name_of_case);

using RunStoppedOtherwise = RunStopped;

// A background job that reads from its terminal is stopped like this.
TEST_P(RunStoppedOtherwise, BySigttinHearsThatItIsToEnd) {
    Running running = start_and_await({"stopped", std::to_string(SIGTTIN)}, 1);
    await_stop();
    running.signal(GetParam().signal);
    EXPECT_EQ(running.wait().status, 128 + GetParam().signal);
}

TEST_P(RunStoppedOtherwise, WithOneOfTwoProcessesEndsWhole) {
    Running running = start_and_await({"stop"}, 2);
    await_stop();
    running.signal(GetParam().signal);
    EXPECT_EQ(running.wait().status, 128 + GetParam().signal);
    EXPECT_FALSE(anybody_alive());
    EXPECT_EQ(look().state, LockState::free);
}

TEST_P(RunStoppedOtherwise, InAGroupOfItsOwnGoesOnToBeEndedByItsParent) {
    Running running = start_and_await({"apart"}, 2);
    await_stop();
    running.signal(GetParam().signal);
    EXPECT_EQ(running.wait().status, 93);
    EXPECT_FALSE(anybody_alive());
}

INSTANTIATE_TEST_SUITE_P(Signal, RunStoppedOtherwise, testing::Values(stop_signals[0]), name_of_case);

/// The caller ignores a signal, as `nohup` does with SIGHUP, and a shell with SIGINT and SIGQUIT for `command &`.
class RunIgnoring : public RunFixture, public testing::WithParamInterface<SignalCase> {
protected:
    Running start_ignoring(const Args& how, const Args& flags = {}) {
        Args args{"/bin/sh", "-c", std::string("trap '' ") + GetParam().name + "; exec \"$@\"", "sh", box_.program};
        const Args run = command(how, flags);
        args.insert(args.end(), run.begin(), run.end());
        return box_.start_program(args);
    }
};

TEST_P(RunIgnoring, ASignalThatTheCallerIgnoresDoesNotEndTheWait) {
    const auto store = must(open_store("file:" + store_folder_.string()));
    const auto other = by_bob(name_, 60s);
    must(store->apply_one(other, soon()));
    Running running = start_ignoring({"exit", "7"}, {"--wait", "60s"});
    ASSERT_TRUE(eventually([&] { return look().waiters == 1; }));
    running.signal(GetParam().signal);
    must(store->apply_one(release(other), soon()));
    EXPECT_EQ(running.wait().status, 7);
}

TEST_P(RunIgnoring, ASignalThatTheCallerIgnoresIsNotPassedOn) {
    Running running = start_ignoring({"default"});
    await_roster(1);
    running.signal(GetParam().signal);
    running.signal(SIGUSR1);
    EXPECT_EQ(running.wait().status, 128 + SIGUSR1);
}

INSTANTIATE_TEST_SUITE_P(Signal, RunIgnoring, testing::ValuesIn(stop_signals), name_of_case);

class RunLoss : public RunFixture {
protected:
    static pid_t parent_of(pid_t pid) {
        std::ifstream file("/proc/" + std::to_string(pid) + "/status");
        for (std::string line; std::getline(file, line);)
            if (line.starts_with("PPid:")) return std::stoi(line.substr(5));
        return 0;
    }
    /// Waits for the end of a run with --json, and says why its lease was lost.
    static std::string reason(Running& running) {
        const auto ended = running.wait();
        EXPECT_EQ(ended.status, 76) << ended.err;
        EXPECT_EQ(ended.json().text("/outcome"), "lost");
        return ended.json().text("/error/message");
    }
    Running start_script(const std::string& script, const Args& flags) {
        Args args{"run", "--store", "file:" + store_folder_.string()};
        args.insert(args.end(), flags.begin(), flags.end());
        args.insert(args.end(), {name_.text(), "--", "/bin/sh", "-c", script});
        return box_.start(args, {{"PATH", std::string(HOLDFAST_BIN) + ":/usr/bin:/bin"}});
    }
};

TEST_F(RunLoss, SaysThatTheLongestHoldIsReached) {
    Running running = start({"obey"}, {"--max-hold", "600ms", "--json"});
    EXPECT_THAT(reason(running), AllOf(HasSubstr("max_hold"), HasSubstr("600 ms"), HasSubstr(name_.text())));
    Running in_words = start({"obey"}, {"--max-hold", "600ms"});
    EXPECT_THAT(in_words.wait().err, HasSubstr("max_hold"));
}

TEST_F(RunLoss, AShortLongestHoldLeavesTheCommandTimeToWork) {
    // The usual grace of 5 s is longer than the whole lease.
    const auto ended = start_script("sleep .2; exit 5", {"--max-hold", "3s"}).wait();
    EXPECT_EQ(ended.status, 5) << ended.err;
    EXPECT_EQ(start_script("true", {"--max-hold", "3s", "--grace", "2s"}).wait().status, 64);
}

TEST_F(RunLoss, WithRenewalOffSaysSoAndTheCommandHasTheTimeUpToItsGrace) {
    box_.write(box_.work / "holdfast.toml", "[[policy]]\nmatch = \"deploy/*\"\nrenew = false\n");
    const auto heard = box_.root / "heard";
    const Instant before = host_clock().wall();
    Running running =
        start_script("trap 'date +%s%3N >" + heard.string() + "; exit 0' TERM; while :; do sleep .01; done",
                     {"--ttl", "2s", "--grace", "200ms", "--json"});
    EXPECT_THAT(reason(running), AllOf(HasSubstr("renew = false"), HasSubstr("2 s"), HasSubstr(name_.text())));
    std::int64_t term_at = 0;
    std::ifstream(heard) >> term_at;
    // The whole ttl, but for the grace, for what clocks may differ (300 ms here) and for SIGKILL to work, which has a
    // third of the grace.
    EXPECT_GE(Instant{std::chrono::milliseconds{term_at}}, before + 2s - 200ms - 300ms - 67ms);
}

TEST_F(RunLoss, SaysWhatTheStoreSaidLastAndWhenItLastAnswered) {
    Running running = start({"obey"}, {"--json"});
    await_roster(1);
    take_store_away();
    EXPECT_THAT(reason(running), AllOf(HasSubstr("could not be renewed"), HasSubstr("last renewed"), HasSubstr("UTC"),
                                       HasSubstr("E_STORE_"), HasSubstr("store")));
}

TEST_F(RunLoss, SaysHowTheCommandEnded) {
    Running running = start({"deaf"}, {"--json"});
    await_roster(1);
    take_store_away();
    const auto document = running.wait().json();
    EXPECT_EQ(document.text("/outcome"), "lost");
    EXPECT_EQ(document.number("/child/signal"), SIGKILL);
    EXPECT_FALSE(document.has("/child/code"));
}

TEST_F(RunLoss, SaysThatTheDiskTakesNoMore) {
    // No file may grow any more. What it says goes through a pipe, which is none.
    Args args{"/bin/sh", "-c", "\"$@\" | cat", "sh", box_.program};
    const Args run = command({"obey"}, {"--json"});
    args.insert(args.end(), run.begin(), run.end());
    Running running = box_.start_program(args);
    await_roster(1);
    const pid_t supervisor = parent_of(*roster().begin());
    ASSERT_GT(supervisor, 1);
    const rlimit nothing{0, 0};
    ASSERT_EQ(prlimit(supervisor, RLIMIT_FSIZE, &nothing, nullptr), 0);
    const auto ended = running.wait();
    EXPECT_EQ(ended.json().text("/outcome"), "lost");
    EXPECT_THAT(ended.json().text("/error/message"), HasSubstr("File too large"));
}

TEST_F(RunLoss, SaysThatHoldfastItselfWasStopped) {
    Running running = start({"obey"}, {"--json"});
    await_roster(1);
    ASSERT_EQ(kill(inner_of(running), SIGSTOP), 0);
    EXPECT_THAT(reason(running), HasSubstr("holdfast was stopped for too long"));
}

TEST_F(RunLoss, SaysThatTheInnerProcessWasKilled) {
    Running running = start({"obey"}, {"--json"});
    await_roster(1);
    ASSERT_EQ(kill(inner_of(running), SIGKILL), 0);
    const auto ended = running.wait();
    EXPECT_EQ(ended.status, 76);
    EXPECT_EQ(ended.json().text("/outcome"), "lost");
    EXPECT_EQ(ended.json().number("/child/signal"), SIGTERM);
    EXPECT_THAT(ended.json().text("/error/message"), HasSubstr("was killed by signal 9"));
}

TEST_F(RunLoss, SaysWhoTookTheLockAwayAndWhyLongBeforeARenewalIsDue) {
    Running running = start({"obey"}, {"--json", "--ttl", "1h"});
    await_roster(1);
    const auto store = must(open_store("file:" + store_folder_.string()));
    must(store->apply_one(Break{name_, look().lease->lock_id, "operator", "runner is gone"}, soon()));
    EXPECT_THAT(reason(running), AllOf(HasSubstr("operator"), HasSubstr("runner is gone")));
}

TEST_F(RunLoss, SaysThatSomebodyGaveTheLockBack) {
    Running running = start_script("holdfast release deploy/web -q; sleep 60", {"--ttl", "3s", "--json"});
    EXPECT_THAT(reason(running), AllOf(HasSubstr("released"), HasSubstr("somebody else")));
}

class RunWords : public RunLoss {
protected:
    [[nodiscard]] cli_test::Ended run_script(const std::string& script, const Args& flags = {}) {
        return start_script(script, flags).wait();
    }
};

// Cron sends a mail for every word.
TEST_F(RunWords, ASuccessWithoutATerminalIsQuiet) {
    EXPECT_EQ(run_script("true").err, "");
    EXPECT_THAT(run_script("true", {"-v"}).err, HasSubstr("ended with status 0"));
    EXPECT_THAT(run_script("exit 3").err, HasSubstr("ended with status 3"));
    EXPECT_THAT(run_script("true", {"--no-lock"}).err, HasSubstr("warning"));
}

TEST_F(RunWords, WhatWasSkippedBecauseTheLockIsHeldIsQuietWithoutATerminal) {
    must(must(open_store("file:" + store_folder_.string()))->apply_one(by_bob(name_, 60s), soon()));
    const auto skipped = run_script("echo started", {"--if-held", "skip"});
    EXPECT_EQ(skipped.status, 0);
    EXPECT_EQ(skipped.out + skipped.err, "");
    EXPECT_THAT(run_script("echo started", {"--if-held", "skip", "-v"}).err, HasSubstr("skipped"));
}

TEST_F(RunWords, ACommandWithALongPathIsNamedByTheEndOfIt) {
    auto folder = box_.root;
    // Letters of two bytes, so that a cut in bytes falls into one of them with every second length.
    for (int level = 0; level < 3; ++level) folder /= "ä" + std::string(static_cast<std::size_t>(level), 'x');
    for (int level = 0; level < 3; ++level) {
        std::string name;
        for (int letter = 0; letter < 60; ++letter) name += "ö";
        folder /= name;
    }
    std::filesystem::create_directories(folder);
    for (const char* name : {"nightly", "nightly2"}) {
        const auto program = folder / name;
        std::filesystem::create_symlink("/bin/sh", program);
        const auto ended = box_.run({"run", "--store", "file:" + store_folder_.string(), name_.text(), "--",
                                     program.string(), "-c", "holdfast status deploy/web --json"},
                                    {{"PATH", std::string(HOLDFAST_BIN) + ":/usr/bin:/bin"}});
        ASSERT_EQ(ended.status, 0) << ended.err;
        const std::string operation = ended.json().text("/operation");
        EXPECT_LE(operation.size(), 255U);
        EXPECT_GT(operation.size(), 250U);
        EXPECT_THAT(operation, AllOf(testing::StartsWith("…"), testing::EndsWith(std::string("ö/") + name)));
    }
}

class RunKilledLate : public RunFixture {};

// The grace has begun when one process dies, and the other must not begin another one.
TEST_F(RunKilledLate, AChildThatIsDeafDiesBeforeTheEndOfTheLease) {
    Running running = start({"deaf"}, {"--ttl", "6s", "--grace", "3s"});
    await_roster(1);
    const pid_t child = *roster().begin();
    take_store_away();
    ASSERT_TRUE(
        eventually([&] { return std::filesystem::exists(roster_folder_ / (std::to_string(child) + ".term")); }));
    const Instant end = look().lease->expires_at;
    ASSERT_TRUE(eventually([&] { return host_clock().wall() >= end - 2400ms; }));
    ASSERT_EQ(kill(inner_of(running), SIGKILL), 0);
    EXPECT_EQ(running.wait().status, 76);
    EXPECT_FALSE(is_alive(child));
    EXPECT_LT(last_sign_of_life(), end);
}

/// Where /proc is empty, as in a bare chroot.
class RunWithoutProc : public RunFixture {
protected:
    void SetUp() override {
        if (box_.run_program(hidden({"/bin/true"})).status != 0)
            GTEST_SKIP() << not_here << "/proc cannot be hidden: mount namespaces are not allowed";
    }
    static Args hidden(const Args& command) {
        Args args{"/usr/bin/unshare", "--mount"};
        if (geteuid() != 0) args.insert(args.end(), {"--user", "--map-root-user"});
        args.insert(args.end(), {"/bin/sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"});
        args.insert(args.end(), command.begin(), command.end());
        return args;
    }
    Running start_hidden(const Args& how, const Args& flags = {}) {
        Args args{box_.program};
        const Args run = command(how, flags);
        args.insert(args.end(), run.begin(), run.end());
        return box_.start_program(hidden(args));
    }
};

TEST_F(RunWithoutProc, TheStatusIsThatOfTheChildAndTheWeakerPromiseIsSaid) {
    const auto ended = start_hidden({"exit", "3"}).wait();
    EXPECT_EQ(ended.status, 3) << ended.err;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("/proc"), HasSubstr("ended with status 3")));
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(RunWithoutProc, WhatIsLeftRunningKeepsTheLeaseFromBeingReleased) {
    const auto ended = start_hidden({"leave"}, {"--grace", "100ms", "--leave-behind"}).wait();
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.err, AllOf(HasSubstr("left running"), HasSubstr("not released")));
    EXPECT_NE(look().state, LockState::free);
    await_roster(1);
    for (const pid_t pid : roster()) kill(pid, SIGKILL);
}

TEST_F(RunWithoutProc, WhatLeftTheSessionKeepsTheLockUntilItEnds) {
    Running running = start_hidden({"leave"});
    await_roster(1);
    ASSERT_TRUE(eventually([&] { return running.err().contains("cannot be named without /proc"); })) << running.err();
    EXPECT_EQ(look().state, LockState::held);
    for (const pid_t pid : roster()) kill(pid, SIGKILL);
    EXPECT_EQ(running.wait().status, 0);
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(RunWithoutProc, EitherProcessEndsTheGroupWhenTheOtherIsKilled) {
    for (const bool kills_outer : {true, false}) {
        for (const auto& entry : std::filesystem::directory_iterator(roster_folder_)) std::filesystem::remove(entry);
        Running running = start_hidden({"fork"}, {"--wait", "60s"});
        await_roster(2);
        kill(kills_outer ? running.pid() : inner_of(running), SIGKILL);
        EXPECT_EQ(running.wait().status, kills_outer ? 128 + SIGKILL : 76);
        expect_that_nobody_outlived_the_lease();
    }
}

TEST_F(RunWithoutProc, ALostLeaseSaysThatSomebodyMayStillBeAtWork) {
    Running running = start_hidden({"daemon"});
    await_roster(2);
    take_store_away();
    const auto ended = running.wait();
    EXPECT_EQ(ended.status, 76) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("still running"));
    for (const pid_t pid : roster()) kill(pid, SIGKILL);
}

// The supervisor can be stopped at any moment, also between the grant and the start of the command.
TEST_F(RunFixture, ACommandIsNotStartedUnderALeaseThatIsOver) {
    const Args slowly{"/usr/bin/strace", "-f", "-o", "/dev/null", "-e", "inject=vfork:delay_enter=800000"};
    if (!can_run(slowly)) GTEST_SKIP() << not_here << "strace cannot trace";
    Args command = slowly;
    command.insert(command.end(), {box_.program, "run", "a", "--store", "file:" + store_folder_.string(), "--ttl",
                                   "500ms", "--", "touch", "started"});
    const auto ended = box_.run_program(command);
    EXPECT_EQ(ended.status, 76) << ended.err;
    // Either the start is refused, or the outer process ends it before it becomes the command.
    EXPECT_THAT(ended.err, testing::AnyOf(HasSubstr("the lease ran out before the command could be started"),
                                          HasSubstr("holdfast was stopped for too long to renew the lease in time")));
    EXPECT_FALSE(std::filesystem::exists(box_.work / "started"));
}

}  // namespace
}  // namespace holdfast::tests
