// Goal: the parts that the supervisor uses work: which processes are descendants, how a command is started, which
// signals are heard, and how often a lease is renewed. Method: each part by itself, with real processes.

#include "guards/supervisor_fixture.hpp"

#include <algorithm>
#include <linux/sockios.h>
#include <set>
#include <sys/ioctl.h>
#include <sys/prctl.h>

namespace holdfast::guards::run {
namespace {

using testing::Contains;
using testing::Not;

TEST(RunSignalsOfTheCaller, WhatComesTooLateForTheCommandEndsNobody) {
    {
        const Signals signals;
        for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGXFSZ}) kill(getpid(), signal);
    }
    SUCCEED() << "this process is still here";
}

TEST(RunSignalsOfTheCaller, TheStatusIsFoundAlthoughTheCallerIgnoresItsChildren) {
    std::signal(SIGCHLD, SIG_IGN);
    {
        const Signals signals;
        const TimeLimit limit;
        Job job;
        job.command = {"/bin/sh", "-c", "exit 3"};
        EXPECT_EQ(supervise(job, nullptr, signals, host_clock()).code, 3);
    }
    EXPECT_EQ(std::signal(SIGCHLD, SIG_DFL), SIG_IGN) << "the caller has it as it was";
}

TEST(RunSignalsOfTheCaller, AreBlockedAsBeforeAndTheCommandStartsLikeThat) {
    sigset_t user{};
    sigemptyset(&user);
    sigaddset(&user, SIGUSR2);
    sigset_t before{};
    pthread_sigmask(SIG_BLOCK, &user, &before);
    {
        const Signals signals;
        const TimeLimit limit;
        Job job;
        // SIGUSR2 is the twelfth. The C library keeps two beyond the classic ones for itself.
        job.command = {"grep", "-q", "^SigBlk:.*0000800$", "/proc/self/status"};
        EXPECT_EQ(supervise(job, nullptr, signals, host_clock()).code, 0);
    }
    sigset_t after{};
    pthread_sigmask(SIG_SETMASK, &before, &after);
    EXPECT_EQ(sigismember(&after, SIGUSR2), 1);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) EXPECT_EQ(sigismember(&after, signal), 0) << signal;
}

TEST(RunStopListener, IsStoppedByTheFirstStopSignalAndByNoOther) {
    const Signals signals;
    const TimeLimit limit;
    base::Fd outer;
    OuterLink link = make_link(outer);
    const auto pass_on = [&](int signal) {
        EXPECT_EQ(send(outer.get(), &signal, sizeof signal, 0), ssize_t{sizeof signal});
    };
    {
        std::stop_source source;
        StopListener listener(link, source);
        for (const int signal : {SIGUSR1, SIGWINCH, SIGALRM, SIGTSTP, SIGCONT}) pass_on(signal);
        // Read by the listener, all of them.
        int unread = 1;
        while (unread > 0) {
            std::this_thread::sleep_for(2ms);
            ASSERT_EQ(ioctl(outer.get(), SIOCOUTQ, &unread), 0);
        }
        EXPECT_EQ(listener.finish(), std::nullopt);
        EXPECT_FALSE(source.stop_requested());
    }
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
        std::stop_source source;
        StopListener listener(link, source);
        pass_on(SIGUSR1);
        pass_on(signal);
        while (!source.stop_requested()) std::this_thread::sleep_for(2ms);
        EXPECT_EQ(listener.finish(), signal);
    }
}

TEST(RunStopListener, OfACommandEndsTheProcessWithTheSecondSignal) {
    const TimeLimit limit;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);  // A child that nothing ends must not outlive the test.
        const Signals signals(Signals::Take::requests_to_end);
        std::stop_source source;
        StopListener listener(signals, source);
        kill(getpid(), SIGTERM);
        while (!source.stop_requested()) std::this_thread::sleep_for(2ms);
        if (listener.heard() != SIGTERM) _exit(1);
        kill(getpid(), SIGINT);
        while (true) pause();
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
}

// A command that is granted a lock in the moment in which it is told to stop gives the lock back.
TEST(RunStopListener, KnowsASignalThatItsThreadHasNotReadYet) {
    for (int round = 0; round < 200; ++round) {
        const Signals signals(Signals::Take::requests_to_end);
        std::stop_source source;
        StopListener listener(signals, source);
        ASSERT_EQ(listener.heard(), 0);
        kill(getpid(), SIGTERM);
        ASSERT_EQ(listener.heard(), SIGTERM) << "round " << round;
        ASSERT_TRUE(source.stop_requested() || listener.finish() == SIGTERM);
    }
}

TEST(RunSignals, OfACommandLeaveOthersThanRequestsToEndAlone) {
    sigset_t during{};
    {
        const Signals signals(Signals::Take::requests_to_end);
        pthread_sigmask(SIG_SETMASK, nullptr, &during);
    }
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) EXPECT_EQ(sigismember(&during, signal), 1) << signal;
    for (const int signal : {SIGTSTP, SIGCHLD, SIGQUIT, SIGUSR1}) EXPECT_EQ(sigismember(&during, signal), 0) << signal;
    sigset_t after{};
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) EXPECT_EQ(sigismember(&after, signal), 0) << signal;
}

TEST(RunStopListener, IsStoppedByTheDeathOfTheOuterProcess) {
    const TimeLimit limit;
    base::Fd outer;
    OuterLink link = make_link(outer);
    std::stop_source source;
    StopListener listener(link, source);
    outer.reset();
    while (!source.stop_requested()) std::this_thread::sleep_for(2ms);
    EXPECT_EQ(listener.finish(), SIGKILL);
}

/// Processes of this one, which end with the test.
class RunProcesses : public testing::Test {
protected:
    ~RunProcesses() override {
        for (const pid_t pid : started_) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
    }
    /// A child that does `work`, and then lives until it is killed.
    template <class Work>
    pid_t child(Work work) {
        int ends[2] = {-1, -1};
        EXPECT_EQ(pipe(ends), 0);
        const pid_t pid = fork();
        if (pid == 0) {
            work();
            if (write(ends[1], "x", 1) != 1) _exit(1);
            for (;;) pause();
        }
        char ready = 0;
        EXPECT_EQ(read(ends[0], &ready, 1), 1);
        for (const int end : ends) close(end);
        started_.push_back(pid);
        return pid;
    }
    /// A child that has ended and was not waited for.
    pid_t zombie() {
        const pid_t pid = child([] {});
        kill(pid, SIGKILL);
        EXPECT_TRUE(ends_in_time(pid));
        return pid;
    }
    static std::set<pid_t> pids(const std::vector<Relative>& relatives) {
        std::set<pid_t> all;
        for (const Relative& each : relatives) all.insert(each.pid);
        return all;
    }

    std::vector<pid_t> started_;
};

TEST_F(RunProcesses, ChildrenAreCountedDeadOrAlive) {
    EXPECT_FALSE(has_children());
    EXPECT_TRUE(children().empty());
    const pid_t dead = zombie();
    EXPECT_TRUE(has_children());
    EXPECT_TRUE(has_children()) << "it was waited for by who asked";
    const pid_t one = child([] {});
    const pid_t two = child([] {});
    EXPECT_EQ(children(), (std::set<pid_t>{dead, one, two}));
}

TEST_F(RunProcesses, DescendantsAreTheLivingOnesOfEveryGenerationButTheExceptions) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // So that the grandchild can be waited for.
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe(ends), 0);
    const pid_t dead = zombie();
    const pid_t parent = child([&] {
        const pid_t grandchild = fork();
        if (grandchild == 0)
            for (;;) pause();
        if (write(ends[1], &grandchild, sizeof grandchild) < 0) _exit(1);
    });
    pid_t grandchild = 0;
    ASSERT_EQ(read(ends[0], &grandchild, sizeof grandchild), ssize_t{sizeof grandchild});
    for (const int end : ends) close(end);
    const pid_t other = child([] {});
    EXPECT_EQ(pids(descendants(getpid(), {})), (std::set<pid_t>{parent, grandchild, other}));
    EXPECT_EQ(pids(descendants(getpid(), {parent})), std::set<pid_t>{other}) << "nor what the exceptions started";
    EXPECT_THAT(pids(descendants(getpid(), {grandchild})), Contains(parent));
    EXPECT_THAT(pids(descendants(getpid(), {})), Not(Contains(dead)));
    started_.push_back(grandchild);
}

TEST_F(RunProcesses, AProcessMayBeCalledAnything) {
    for (const char* name : {"a) Z 1 (", "(((", ")", "a b", "1 (x) S 1"}) {
        const pid_t pid = child([&] { prctl(PR_SET_NAME, name); });
        const auto found = descendants(getpid(), {});
        const auto self = std::ranges::find(found, pid, &Relative::pid);
        ASSERT_NE(self, found.end()) << name;
        EXPECT_EQ(self->name, name);
    }
}

TEST_F(RunProcesses, ACommandAnnouncesItselfBeforeItRuns) {
    const SharedState state = must(share_state());
    const Started started = spawn({.command = {"sleep", "60"}, .environment = {}, .announce = &state->group});
    ASSERT_EQ(started.error, 0);
    started_.push_back(started.pid);
    EXPECT_EQ(state->group, started.pid);
    EXPECT_EQ(getpgid(started.pid), started.pid) << "the leader of a group of its own";
}

TEST_F(RunProcesses, ACommandThatCannotBeRunIsNotAnnounced) {
    const SharedState state = must(share_state());
    EXPECT_EQ(spawn({.command = {"/no/such/command"}, .environment = {}, .announce = &state->group}).error, ENOENT);
    EXPECT_EQ(state->group, 0);
}

TEST_F(RunProcesses, ACommandIsNotStartedFromTheGivenTimeOn) {
    const auto start = [](Boottime before) {
        return spawn({.command = {"true"}, .environment = {}, .start_before = before});
    };
    EXPECT_EQ(start(host_clock().boottime()).error, ETIME);
    EXPECT_FALSE(has_children());
    const Started started = start(host_clock().boottime() + 1h);
    EXPECT_EQ(started.error, 0);
    started_.push_back(started.pid);
}

TEST(RunRenewal, IsOftenEnoughForTwoTriesBeforeTheCommandHasToEnd) {
    EXPECT_EQ(renew_interval(30s, 5s), 8250ms);
    EXPECT_EQ(renew_interval(1h, 5s), 20min) << "a third of a long lease";
    EXPECT_EQ(renew_interval(1500ms, 500ms), 229ms);
    EXPECT_EQ(renew_interval(100ms, 50ms), 10ms) << "not without a pause";
}

}  // namespace
}  // namespace holdfast::guards::run
