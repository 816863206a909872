// Goal: the supervisor passes on what is meant for the command and nothing else, tells the outer process everything in
// time, and ends the command when it cannot renew. Method: the supervisor inside the test, with real processes; what
// the outer process is told is read in its place.

#include "guards/supervisor_fixture.hpp"

#include <pthread.h>

namespace holdfast::guards::run {
namespace {

using testing::HasSubstr;
using Phase = ChainState::Phase;

/// A script that ends with status 7 when there is a file `end`.
constexpr const char* until_end = "; i=0; until [ -e end ] || [ $i -gt 1000 ]; do sleep .02; i=$((i+1)); done; exit 7";

TEST_F(Supervision, ASignalThatAsksNobodyToEndDoesNotKeepACommandFromStarting) {
    for (const int signal : {SIGUSR1, SIGWINCH, SIGCONT, SIGCHLD}) kill(getpid(), signal);
    EXPECT_EQ(run(job_of("exit 3", 1s), lasting_for(60s)).code, 3);
}

TEST_F(Supervision, WhatConcernsOnlyTheSupervisorIsNotPassedOn) {
    // Without a child of its own, so that every SIGCHLD comes from outside. The second line is its way out.
    const Job job = job_of("mkfifo wake; trap ': >child' CHLD; : >ready; read -r line <wake; exit 7", 1s);
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        awaits("ready");
        for (const int signal : {SIGCHLD, SIGTTIN, SIGTTOU}) kill(getpid(), signal);
        sigset_t waiting{};
        do {
            std::this_thread::sleep_for(2ms);
            sigpending(&waiting);
        } while (sigisemptyset(&waiting) == 0);
        // A command that was stopped never reads it.
        std::ofstream(folder_.path() / "wake") << "go on\n";
    });
    EXPECT_EQ(verdict.code, 7);
    EXPECT_FALSE(exists("child"));
}

TEST_F(Supervision, OnlyASecondTermOrIntIsASecondRequestToEnd) {
    for (const int first : {SIGHUP, SIGQUIT, SIGUSR1}) {
        const Job job =
            job_of(std::string("trap ': >other' HUP QUIT USR1; trap ': >term' TERM; : >ready") + until_end, 1s);
        const Verdict verdict = run(job, lasting_for(60s), [&] {
            awaits("ready");
            kill(getpid(), first);
            awaits("other");
            kill(getpid(), SIGTERM);
            awaits("term");
            make("end");
        });
        EXPECT_EQ(verdict.code, 7) << first;
        for (const char* file : {"ready", "other", "term", "end"}) std::filesystem::remove(folder_.path() / file);
    }
}

TEST_F(Supervision, TheSameRequestToEndTwiceKills) {
    for (const int signal : {SIGTERM, SIGINT}) {
        const Job job = job_of(std::string("trap ': >heard' TERM INT; : >ready") + live, 1s);
        const Verdict verdict = run(job, lasting_for(60s), [&] {
            awaits("ready");
            kill(getpid(), signal);
            awaits("heard");
            kill(getpid(), signal);
        });
        EXPECT_EQ(verdict.signal, SIGKILL) << signal;
        EXPECT_EQ(verdict.ending, Ending::child_exit) << "nothing was lost";
        EXPECT_FALSE(verdict.margin);
        for (const char* file : {"ready", "heard"}) std::filesystem::remove(folder_.path() / file);
    }
}

TEST_F(Supervision, AStoppedProcessInASessionOfItsOwnGoesOnToHearOfALoss) {
    std::ofstream(folder_.path() / "helper") << std::string("trap 'touch cleaned; exit 0' TERM; ") + stop + live;
    const Job job = job_of(
        std::string("setsid sh ./helper & trap 'until [ -e cleaned ]; do sleep .02; done; exit 0' TERM") + live, 5s);
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        awaits("ready");
        take_away();
    });
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_TRUE(exists("cleaned"));
}

TEST_F(Supervision, AProcessWhoseFirstThreadHasEndedIsEndedAfterALoss) {
    Job job = job_of("", 100ms);
    job.command = {SUBJECT, folder_.path(), "headless"};
    pid_t worker = 0;
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        worker = headless();
        take_away();
    });
    EXPECT_EQ(verdict.ending, Ending::lost);
    ASSERT_GT(worker, 0);
    EXPECT_EQ(kill(worker, 0), -1) << "it works on";
}

TEST_F(Supervision, AProcessWhoseFirstThreadHasEndedIsNamedWhenItIsLeftOver) {
    Job job = job_of("", 100ms);
    job.leave_behind = true;
    job.command = {SUBJECT, folder_.path(), "headless"};
    pid_t worker = 0;
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        worker = headless();
        kill(getpid(), SIGUSR1);  // Ends the command, and not the worker.
    });
    EXPECT_EQ(verdict.signal, SIGUSR1);
    ASSERT_EQ(verdict.left_over.size(), 1U);
    EXPECT_EQ(verdict.left_over.front().pid, worker);
    EXPECT_EQ(look().state, LockState::held) << "given back while it works";
    kill(worker, SIGKILL);
}

TEST_F(Supervision, ACommandThatCannotBeStartedForAnotherReasonIsAFailureAndGivesTheLockBack) {
    Job job = job_of("", 1s);
    job.command = {"/bin/true", std::string(1'000'000, 'x')};
    const Verdict verdict = run(job, lasting_for(60s));
    EXPECT_EQ(verdict.ending, Ending::failed);
    ASSERT_TRUE(verdict.error);
    EXPECT_THAT(verdict.error->message, HasSubstr("cannot run /bin/true: Argument list too long"));
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(Supervision, WithoutALeaseNothingIsWaitedForButTheCommand) {
    const Verdict verdict =
        supervise(job_of("sleep 60 & echo $! >left; exit 3", 30min), nullptr, signals_, host_clock());
    EXPECT_EQ(verdict.ending, Ending::child_exit);
    EXPECT_EQ(verdict.code, 3);
    EXPECT_TRUE(verdict.left_over.empty());
    pid_t left = 0;
    std::ifstream(folder_.path() / "left") >> left;
    ASSERT_GT(left, 1);
    EXPECT_EQ(kill(left, 0), 0) << "nor ended";
    kill(left, SIGKILL);
    waitpid(left, nullptr, 0);
}

/// As long as it lives no thread can be started in this process.
class NoThreads {
public:
    NoThreads() {
        pthread_getattr_default_np(&before_);
        pthread_attr_t huge;
        pthread_attr_init(&huge);
        pthread_attr_setstacksize(&huge, std::size_t{1} << 60);
        pthread_setattr_default_np(&huge);
        pthread_attr_destroy(&huge);
    }
    NoThreads(const NoThreads&) = delete;
    NoThreads& operator=(const NoThreads&) = delete;
    ~NoThreads() {
        pthread_setattr_default_np(&before_);
        pthread_attr_destroy(&before_);
    }

private:
    pthread_attr_t before_;
};

TEST_F(Supervision, WithoutAThreadThatRenewsTheCommandIsEndedInTimeAndTheReasonIsTold) {
    const Job job = job_of(std::string("true") + live, 200ms);
    auto options = lasting_for(1500ms);
    options.time_to_stop = job.grace;
    Guarded guarded{must(hold_all({{&store_, name_, options}})), link_};
    const NoThreads no_threads;
    const Verdict verdict = supervise(job, &guarded, signals_, host_clock());
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_EQ(verdict.signal, SIGTERM);
    ASSERT_TRUE(verdict.error);
    EXPECT_EQ(verdict.error->code, Errc::lock_expired);
    // Which of the threads is asked for first, and so refused, is the client's affair.
    EXPECT_THAT(verdict.error->message, HasSubstr("could not be renewed in time: cannot start a thread that "));
}

TEST_F(Supervision, AThreadThatCouldNotBeStartedIsAskedForAgain) {
    const Job job = job_of(std::string(": >ready") + until_end, 200ms);
    auto options = lasting_for(60s);
    options.time_to_stop = job.grace;
    Guarded guarded{must(hold_all({{&store_, name_, options}})), link_};
    std::optional<NoThreads> no_threads;
    const std::jthread other([&] {
        awaits("ready");
        // More than the time after which a command is worth a thread.
        std::this_thread::sleep_for(100ms);
        EXPECT_EQ(look().lease->renew_seq, 0U);
        no_threads.reset();
        const Deadline end = Deadline::in(host_clock(), time_limit);
        while (look().lease->renew_seq < 2 && !end.passed(host_clock())) std::this_thread::sleep_for(2ms);
        EXPECT_GE(look().lease->renew_seq, 2U) << "nobody renews";
        make("end");
    });
    no_threads.emplace();
    EXPECT_EQ(supervise(job, &guarded, signals_, host_clock()).code, 7);
}

TEST_F(Supervision, TheOuterProcessKnowsTheGroupAndTheEndOfTheLeaseBeforeTheCommandRuns) {
    const Job job = job_of(std::string(": >ready") + until_end, 400ms);
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        awaits("ready");
        const ChainState& state = link_.state();
        EXPECT_EQ(state.phase, Phase::running);
        EXPECT_EQ(getpgid(state.group), state.group);
        EXPECT_EQ(state.grace_ms, 400);
        // SIGKILL 50 ms before the holder's own deadline, which is a tenth before the end of the lease.
        const auto left = Boottime{std::chrono::milliseconds{state.kill_at_ms}} - host_clock().boottime();
        EXPECT_GT(left, 40s);
        EXPECT_LT(left, 54s);
        make("end");
    });
    EXPECT_EQ(verdict.code, 7);
    EXPECT_EQ(link_.state().phase, Phase::done);
    EXPECT_EQ(link_.state().group, 0) << "its number may mean a stranger";
    EXPECT_EQ(link_.state().child_status, W_EXITCODE(7, 0));
    EXPECT_FALSE(link_.state().ending);
}

TEST_F(Supervision, EveryRenewalMovesTheEndThatTheOuterProcessKnows) {
    run(job_of(std::string("true") + until_end, 100ms), lasting_for(60s), [&] {
        const Deadline end = Deadline::in(host_clock(), time_limit);
        while (link_.state().phase != Phase::running) std::this_thread::sleep_for(2ms);
        const std::int64_t first = link_.state().kill_at_ms;
        const int shared = store_.sessions_asked_for();
        EXPECT_GT(shared, 0);
        while (link_.state().kill_at_ms <= first && !end.passed(host_clock())) std::this_thread::sleep_for(2ms);
        EXPECT_GT(link_.state().kill_at_ms, first);
        // The store may have connected again, and the outer process keeps the session that there is now.
        while (store_.sessions_asked_for() == shared && !end.passed(host_clock())) std::this_thread::sleep_for(2ms);
        EXPECT_GT(store_.sessions_asked_for(), shared);
        make("end");
    });
}

// SIGKILL takes a moment, and must have done its work when the lease ends.
TEST_F(Supervision, TheEndThatTheOuterProcessKnowsIsAMarginBeforeThatOfTheLease) {
    HoldOptions options = lasting_for(60s);
    options.renew = false;
    Job job = job_of("true", 100ms);
    options.time_to_stop = job.grace;
    Guarded guarded{must(hold_all({{&store_, name_, options}})), link_};
    const Boottime end = guarded.group.deadline();
    EXPECT_EQ(supervise(job, &guarded, signals_, host_clock()).code, 0);
    EXPECT_LE(Boottime{std::chrono::milliseconds{link_.state().kill_at_ms}}, end - 50ms);
}

TEST_F(Supervision, ALongerGraceLeavesABusyHostMoreTimeForTheKill) {
    HoldOptions options = lasting_for(60s);
    options.renew = false;
    Job job = job_of("true", 6s);
    options.time_to_stop = job.grace;
    Guarded guarded{must(hold_all({{&store_, name_, options}})), link_};
    const Boottime end = guarded.group.deadline();
    EXPECT_EQ(supervise(job, &guarded, signals_, host_clock()).code, 0);
    EXPECT_LE(Boottime{std::chrono::milliseconds{link_.state().kill_at_ms}}, end - 1s);
}

TEST_F(Supervision, TheOuterProcessKnowsThatALossIsTakenCareOf) {
    run(job_of(std::string("trap ': >told' TERM; : >ready") + until_end, 20s), lasting_for(60s), [&] {
        awaits("ready");
        take_away();
        awaits("told");
        EXPECT_TRUE(link_.state().ending);
        make("end");
    });
}

TEST_F(Supervision, TheOuterProcessKnowsThatItIsOverWhenTheCommandIsNotStarted) {
    Job job = job_of("", 1s);
    job.command = {"/no/such/command"};
    EXPECT_EQ(run(job, lasting_for(60s)).ending, Ending::not_runnable);
    EXPECT_EQ(link_.state().phase, Phase::done);
    EXPECT_EQ(link_.state().group, 0);
}

}  // namespace
}  // namespace holdfast::guards::run
