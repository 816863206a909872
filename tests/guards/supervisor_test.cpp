// Goal: what happens between the grant and the start of a command, after SIGTERM, or while what the command left
// behind is waited for, changes neither who is ended nor what is told. Method: the supervisor and its watchdog inside
// the test, with real processes, and a memory store behind a line that can be cut at the right moment.

#include "guards/run/supervisor.hpp"

#include "client/faulty_store.hpp"
#include "guards/run/spawn.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/temp_folder.hpp"
#include "support/time_limit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace holdfast::guards::run {
namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;
using testing::HasSubstr;

/// Ends this program when a test takes far too long: SIGALRM, which does so elsewhere, is blocked here.
class TimeLimit {
    std::jthread thread_{[](const std::stop_token& stop) {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any end;
        end.wait_for(lock, stop, 3 * time_limit, [] { return false; });
        if (!stop.stop_requested()) std::_Exit(2);
    }};
};

/// A folder in which a script says how far it is, by the files that it makes.
class Scripts : public testing::Test {
protected:
    /// A loop at the end of a script: ends by itself long before a test does.
    static constexpr const char* live = "; i=0; while [ $i -lt 500 ]; do sleep .02; i=$((i+1)); done; exit 98";

    /// Stops the script. The file `ready` says that it is stopped.
    static constexpr const char* stop =
        "(until grep -q '^State:.T' /proc/$$/status; do sleep .02; done; : >ready) & kill -STOP $$";
    /// In a process that a script leaves behind: waits until the script has ended and was waited for.
    static constexpr const char* alone = "while kill -0 $$ 2>/dev/null; do sleep .02; done; : >ready";

    [[nodiscard]] std::vector<std::string> script(const std::string& text) const {
        return {"/bin/sh", "-c", "cd '" + folder_.path().string() + "'; " + text};
    }
    [[nodiscard]] bool exists(const std::string& file) const { return std::filesystem::exists(folder_.path() / file); }
    /// Whether `file` is made in time. Not fatal: the test goes on, to let the script end.
    bool awaits(const std::string& file) const {
        const Deadline end = Deadline::in(host_clock(), time_limit);
        while (!exists(file) && !end.passed(host_clock())) std::this_thread::sleep_for(2ms);
        EXPECT_TRUE(exists(file)) << file;
        return exists(file);
    }
    void make(const std::string& file) const { std::ofstream(folder_.path() / file); }

    const Signals signals_;  ///< First, so that every thread has its signals blocked.
    const TimeLimit limit_;
    TempFolder folder_;
};

class Supervision : public Scripts {
protected:
    [[nodiscard]] HoldOptions lasting_for(std::chrono::milliseconds ttl) const {
        HoldOptions options;
        options.ttl = lasting(ttl);
        options.renew_interval = std::min<std::chrono::milliseconds>(ttl / 10, 50ms);
        options.renew_from = RenewFrom::the_call;
        return options;
    }
    [[nodiscard]] Job job_of(const std::string& text, std::chrono::milliseconds grace) const {
        Job job;
        job.command = script(text);
        job.mark = LockId::random().text();
        job.environment = {"PATH=/usr/bin:/bin", "HOLDFAST_RUN=" + job.mark};
        job.grace = grace;
        return job;
    }
    /// Supervises `job` under the lock while `meanwhile` happens.
    Verdict run(const Job& job, HoldOptions options, const std::function<void()>& meanwhile = [] {}) {
        options.time_to_stop = job.grace;
        Guarded guarded{must(hold_all({{&store_, name_, options}})), must(Watchdog::start(job.grace))};
        const std::jthread other(meanwhile);
        Verdict verdict = supervise(job, &guarded, signals_, host_clock());
        lost_ = guarded.group.loss().has_value();
        store_.heal();
        return verdict;
    }
    LockStatus look() { return must(inner_->inspect(name_, Deadline::in(host_clock(), 10s))); }
    void take_away() {
        must(inner_->apply_one(Break{name_, look().lease->lock_id, "operator", "stuck"}, Deadline::never()));
    }

    std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    const LockName name_ = lock("deploy/web");
    bool lost_ = false;  ///< Whether the last run lost its hold.
};

TEST_F(Supervision, AStopSignalThatCameBeforeTheStartIsTheEnd) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
        kill(getpid(), signal);
        const Verdict verdict = run(job_of("touch started", 1s), lasting_for(60s));
        EXPECT_EQ(verdict.ending, Ending::interrupted) << signal;
        EXPECT_EQ(verdict.signal, signal);
        EXPECT_FALSE(exists("started")) << signal;
        EXPECT_EQ(look().state, LockState::free) << signal;
    }
}

TEST_F(Supervision, ACommandThatWouldBeToldToEndAtOnceIsNotStarted) {
    // The lease is good for another while, but not for longer than the grace.
    const Verdict verdict = run(job_of("touch started", 10s), lasting_for(5s));
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_FALSE(verdict.code || verdict.signal);
    EXPECT_FALSE(exists("started"));
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(Supervision, ACommandHasItsWholeGrace) {
    auto options = lasting_for(6s);
    options.renew = false;
    const Verdict verdict = run(job_of(std::string("true") + live, 5s), options);
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_EQ(verdict.signal, SIGTERM);
    ASSERT_TRUE(verdict.margin);
    EXPECT_GT(*verdict.margin, 4s) << "the command obeyed at once, so nearly all of its grace is left";
}

TEST_F(Supervision, ADeafCommandThatWasToldToEndIsKilledAlthoughTheStoreComesBack) {
    const Job job = job_of(std::string("trap 'touch told' TERM") + live, 300ms);
    const Verdict verdict = run(job, lasting_for(1500ms), [&] {
        store_.cut();
        awaits("told");
        store_.heal();
    });
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_EQ(verdict.signal, SIGKILL);
    ASSERT_TRUE(verdict.error);
    EXPECT_EQ(verdict.error->code, Errc::lock_expired);
    // On a busy machine the store may have come back too late.
    if (!lost_) {
        EXPECT_EQ(look().state, LockState::free);
    }
}

TEST_F(Supervision, AStoppedCommandGoesOnToHearOfALoss) {
    const Job job = job_of(std::string("trap 'touch cleaned; exit 0' TERM; ") + stop + live, 5s);
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        awaits("ready");
        take_away();
    });
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_TRUE(exists("cleaned"));
}

TEST_F(Supervision, AProcessInASessionOfItsOwnHearsOfALossBeforeItIsKilled) {
    std::ofstream(folder_.path() / "helper") << std::string("trap 'touch cleaned; exit 0' TERM; touch ready") + live;
    const Job job = job_of(std::string("setsid sh ./helper & trap 'until [ -e cleaned ]; do sleep .02; done; exit 0' "
                                       "TERM") +
                               live,
                           5s);
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        awaits("ready");
        take_away();
    });
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_TRUE(exists("cleaned"));
}

TEST_F(Supervision, ALossWhileTheRestIsWaitedForIsNoticed) {
    const Job job = job_of(std::string("(") + alone + "; exec sleep 10) & exit 3", 30min);
    const Verdict verdict = run(job, lasting_for(1h), [&] {
        awaits("ready");
        take_away();
    });
    EXPECT_EQ(verdict.ending, Ending::child_exit);
    EXPECT_EQ(verdict.code, 3);
    ASSERT_EQ(verdict.left_over.size(), 1U) << "it was waited for, although the lock was gone";
    kill(verdict.left_over.front().pid, SIGKILL);
}

TEST_F(Supervision, TheRestIsLeftAloneAsLongAsTheLeaseIsRenewed) {
    // The watchdog would send SIGTERM after one and a half seconds, if it heard nothing.
    const Job job = job_of("(sleep 2; touch survived) & exit 0", 4s);
    const Verdict verdict = run(job, lasting_for(5s));
    EXPECT_EQ(verdict.ending, Ending::child_exit);
    EXPECT_TRUE(verdict.left_over.empty());
    EXPECT_TRUE(exists("survived"));
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(Supervision, ASecondRequestToEndIsMeantForTheRestToo) {
    const Job job = job_of(std::string("(trap '' TERM INT; ") + alone + live + ") & exit 0", 30min);
    const Verdict verdict = run(job, lasting_for(1h), [&] {
        awaits("ready");
        // Two different ones, because two of a kind that come at once count as one.
        kill(getpid(), SIGTERM);
        kill(getpid(), SIGINT);
    });
    EXPECT_TRUE(verdict.left_over.empty());
    EXPECT_EQ(look().state, LockState::free);
    EXPECT_EQ(verdict.code, 0);
}

TEST_F(Supervision, TwoHangUpsAreNoRequestToKill) {
    const Job job = job_of(
        "n=0; trap 'n=$((n+1)); touch heard$n' HUP; touch ready; i=0; "
        "while [ $n -lt 2 ] && [ $i -lt 500 ]; do sleep .02; i=$((i+1)); done; exit 7",
        1s);
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        awaits("ready");
        kill(getpid(), SIGHUP);
        awaits("heard1");
        kill(getpid(), SIGHUP);
    });
    EXPECT_EQ(verdict.code, 7);
}

TEST_F(Supervision, EverySignalOfTheListReachesTheCommand) {
    const Job job = job_of(
        std::string("for s in HUP INT QUIT USR1 USR2 ALRM WINCH; do trap \": >got.$s\" $s; done; touch ready; i=0; "
                    "until [ -e end ] || [ $i -gt 1000 ]; do sleep .02; i=$((i+1)); done; exit 7"),
        1s);
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        awaits("ready");
        for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH}) kill(getpid(), signal);
        for (const char* name : {"HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "WINCH"})
            if (!awaits(std::string("got.") + name)) break;
        make("end");
    });
    EXPECT_EQ(verdict.code, 7);
}

TEST_F(Supervision, WhyACommandCannotBeRunIsToldAlsoIfTheReleaseFails) {
    Job job = job_of("", 1s);
    job.command = {"/no/such/command"};
    auto options = lasting_for(60s);
    Guarded guarded{must(hold_all({{&store_, name_, options}})), must(Watchdog::start(job.grace))};
    store_.cut();
    const Verdict verdict = supervise(job, &guarded, signals_, host_clock());
    EXPECT_EQ(verdict.ending, Ending::not_runnable);
    EXPECT_EQ(verdict.code, 127);
    EXPECT_THAT(verdict.error->message, HasSubstr("cannot run /no/such/command"));
}

TEST_F(Supervision, AFailedReleaseIsToldBesideTheStatusOfTheCommand) {
    const Job job = job_of("touch ready; until [ -e go ]; do sleep .02; done; exit 3", 1s);
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        awaits("ready");
        store_.cut();
        make("go");
    });
    EXPECT_EQ(verdict.ending, Ending::child_exit);
    EXPECT_EQ(verdict.code, 3);
    ASSERT_TRUE(verdict.error);
    EXPECT_EQ(verdict.error->code, Errc::store_unavailable);
}

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

/// A watchdog, and a process group that does not bear its mark.
class WatchdogTest : public Scripts {
protected:
    ~WatchdogTest() override {
        if (group_ <= 0) return;
        kill(-group_, SIGKILL);
        waitpid(group_, nullptr, 0);
    }
    void start(const std::string& text) {
        Launch launch{.command = script(text), .environment = {"PATH=/usr/bin:/bin", "HOLDFAST_RUN=one two three"}};
        launch.signal_mask = signals_.mask_before();
        group_ = spawn(launch).pid;
        ASSERT_GT(group_, 0);
        ASSERT_TRUE(awaits("ready"));
        watchdog_.expect_family_of(LockId::random().text());
        watchdog_.guard(group_);
    }
    static Boottime now() { return host_clock().boottime(); }
    /// Returns when the watchdog has heard everything.
    void finish() {
        watchdog_.dismiss();
        watchdog_.join();
    }
    [[nodiscard]] bool is_running() const {
        siginfo_t info{};
        return waitid(P_PID, static_cast<id_t>(group_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
    }

    Watchdog watchdog_ = must(Watchdog::start(1s));
    pid_t group_ = 0;
};

TEST_F(WatchdogTest, EndsTheGroupAlsoIfNobodyInItBearsTheMark) {
    start(std::string("trap '' TERM; touch ready") + live);
    watchdog_.expect({now(), now()});
    finish();
    EXPECT_TRUE(ends_in_time(group_));
    int status = 0;
    waitpid(std::exchange(group_, 0), &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST_F(WatchdogTest, WarnsAgainAfterADoomThatWasAverted) {
    start(std::string("n=0; trap 'n=$((n+1)); touch told$n' TERM; touch ready") + live);
    watchdog_.expect({now(), now() + 1h});
    ASSERT_TRUE(awaits("told1"));
    watchdog_.expect({now() + 1h, now() + 2h});
    watchdog_.expect({now(), now() + 1h});
    EXPECT_TRUE(awaits("told2"));
    finish();
    EXPECT_TRUE(is_running());
}

TEST_F(WatchdogTest, LetsAStoppedCommandGoOnToHearOfItsEnd) {
    start(std::string("trap 'touch cleaned; exit 0' TERM; ") + stop + live);
    watchdog_.expect({now(), now() + 1h});
    EXPECT_TRUE(awaits("cleaned"));
    finish();
}

TEST_F(WatchdogTest, SignalsNoGroupWhoseNumberMayMeanAStranger) {
    start(std::string("touch ready") + live);
    watchdog_.reaping();
    watchdog_.expect({now(), now()});
    finish();
    EXPECT_TRUE(is_running());
}

TEST_F(WatchdogTest, OfEveryRunAroundAProcessFindsIt) {
    start(std::string("touch ready") + live);
    const auto is_found = [&](const char* mark) {
        return std::ranges::any_of(marked_with(mark), [&](const Relative& each) { return each.pid == group_; });
    };
    for (const char* mark : {"one", "two", "three"}) EXPECT_TRUE(is_found(mark)) << mark;
    EXPECT_FALSE(is_found("four"));
}

TEST_F(WatchdogTest, ThatWasDismissedEndsNobody) {
    start(std::string("touch ready") + live);
    finish();
    EXPECT_TRUE(is_running());
}

TEST_F(WatchdogTest, KeepsNothingOpenOfTheProcessThatStartedIt) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe(ends), 0);
    Watchdog later = must(Watchdog::start(1s));
    close(ends[1]);
    // At its end at once, unless the watchdog has the other end.
    EXPECT_TRUE(readable_in_time(ends[0]));
    close(ends[0]);
    EXPECT_TRUE(later.is_alive());
}

}  // namespace
}  // namespace holdfast::guards::run
