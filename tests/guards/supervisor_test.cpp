// Goal: what happens between the grant and the start of a command, after SIGTERM, or while what the command left behind
// is waited for, changes neither which processes are ended nor the report. Method: the supervisor inside the test, with
// real processes, and a memory store behind a line that can be cut at the right moment.

#include "guards/supervisor_fixture.hpp"

namespace holdfast::guards::run {
namespace {

using testing::HasSubstr;

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

TEST_F(Supervision, AStopSignalThatCameBehindAnotherBeforeTheStartIsTheEnd) {
    // In this order they are read: by their numbers.
    for (const int signal : {SIGUSR1, SIGUSR2, SIGALRM, SIGTERM}) kill(getpid(), signal);
    const Verdict verdict = run(job_of("touch started", 1s), lasting_for(60s));
    EXPECT_EQ(verdict.ending, Ending::interrupted);
    EXPECT_EQ(verdict.signal, SIGTERM);
    EXPECT_FALSE(exists("started"));
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
    auto options = lasting_for(8s);
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

TEST_F(Supervision, ALossWhileTheRestIsWaitedForEndsTheRest) {
    const Job job = job_of(std::string("(trap 'touch told; exit 0' TERM; ") + alone + live + ") & exit 3", 20s);
    const Verdict verdict = run(job, lasting_for(1h), [&] {
        awaits("ready");
        take_away();
    });
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_EQ(verdict.code, 3);
    EXPECT_TRUE(verdict.left_over.empty());
    EXPECT_TRUE(exists("told")) << "killed without a warning";
}

TEST_F(Supervision, TheRestThatIsToBeLeftBehindIsNotEndedByALoss) {
    Job job = job_of(std::string("(") + alone + "; exec sleep 10) & exit 3", 30min);
    job.leave_behind = true;
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
    const Job job = job_of("(sleep 2; touch survived) & exit 0", 500ms);
    std::vector<std::string> notices;
    Job told = job;
    told.notice = [&](const std::string& text) { notices.push_back(text); };
    const Verdict verdict = run(told, lasting_for(1500ms));
    EXPECT_EQ(verdict.ending, Ending::child_exit);
    EXPECT_EQ(verdict.code, 0);
    EXPECT_TRUE(verdict.left_over.empty());
    EXPECT_TRUE(exists("survived"));
    EXPECT_EQ(look().state, LockState::free);
    EXPECT_THAT(notices, testing::Contains(testing::AllOf(HasSubstr("still running: "), HasSubstr("(pid "),
                                                          HasSubstr("--leave-behind"))));
}

TEST_F(Supervision, TheLongestHoldCountsForTheRestToo) {
    auto options = lasting_for(1500ms);
    options.max_hold = 1500ms;
    const Verdict verdict = run(job_of("setsid sleep 30 & exit 0", 300ms), options);
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_EQ(verdict.code, 0);
    EXPECT_TRUE(verdict.left_over.empty());
    EXPECT_FALSE(has_children());
}

TEST_F(Supervision, ASignalReachesTheRestInASessionOfItsOwn) {
    std::ofstream(folder_.path() / "helper") << std::string("trap 'touch told; exit 0' TERM; ") +
                                                    "while kill -0 $1 2>/dev/null; do sleep .02; done; touch ready" +
                                                    live;
    const Job job = job_of("setsid sh ./helper $$ & exit 5", 20s);
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        awaits("ready");
        kill(getpid(), SIGTERM);
    });
    EXPECT_EQ(verdict.ending, Ending::child_exit);
    EXPECT_EQ(verdict.code, 5);
    EXPECT_TRUE(exists("told"));
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(Supervision, ARequestToEndReachesAStoppedProcessOfTheRest) {
    std::ofstream(folder_.path() / "helper") << std::string("trap 'touch told; exit 0' TERM; ") +
                                                    "while kill -0 $1 2>/dev/null; do sleep .02; done; " + stop + live;
    const Job job = job_of("setsid sh ./helper $$ & exit 5", 20s);
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        awaits("ready");
        kill(getpid(), SIGTERM);
    });
    EXPECT_EQ(verdict.code, 5);
    EXPECT_TRUE(exists("told"));
}

TEST_F(Supervision, ARequestToEndIsMeantForWhatOutlivesTheCommandToo) {
    std::ofstream(folder_.path() / "helper") << std::string("trap 'touch told; exit 0' TERM; touch ready") + live;
    const Verdict verdict =
        run(job_of(std::string("setsid sh ./helper & ") + "true" + live, 20s), lasting_for(60s), [&] {
            awaits("ready");
            kill(getpid(), SIGTERM);
        });
    EXPECT_EQ(verdict.signal, SIGTERM);
    EXPECT_TRUE(exists("told"));
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(Supervision, ASignalThatTheOuterProcessPassesOnReachesTheCommand) {
    const Job job = job_of(std::string("trap 'exit 7' USR1; touch ready") + live, 1s);
    const Verdict verdict = run(job, lasting_for(60s), [&] {
        awaits("ready");
        const int signal = SIGUSR1;
        EXPECT_EQ(send(outer_end_.get(), &signal, sizeof signal, 0), ssize_t{sizeof signal});
    });
    EXPECT_EQ(verdict.code, 7);
}

TEST_F(Supervision, WhenTheOuterProcessDiesTheCommandEndsAndTheLockIsGivenBack) {
    const Job job = job_of(std::string("trap 'touch told; exit 4' TERM; touch ready") + live, 20s);
    const Verdict verdict = run(job, lasting_for(1h), [&] {
        awaits("ready");
        break_link();
    });
    EXPECT_EQ(verdict.ending, Ending::child_exit);
    EXPECT_EQ(verdict.code, 4);
    EXPECT_TRUE(exists("told"));
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(Supervision, WhenTheOuterProcessDiesTheLockIsKeptAsLongAsAnybodyLives) {
    std::ofstream(folder_.path() / "helper")
        << "trap '' TERM; touch ready; until [ -e go ]; do sleep .02; done; touch gone";
    const Job job = job_of("setsid env -i sh ./helper & wait", 30s);
    const Verdict verdict = run(job, lasting_for(1h), [&] {
        awaits("ready");
        break_link();
        // The command obeys. Its child, which is deaf, becomes ours.
        const Deadline end = Deadline::in(host_clock(), time_limit);
        while (link_.state().child_status == ChainState::no_status && !end.passed(host_clock()))
            std::this_thread::sleep_for(2ms);
        EXPECT_EQ(look().state, LockState::held);
        make("go");
    });
    EXPECT_EQ(verdict.signal, SIGTERM);
    EXPECT_TRUE(exists("gone"));
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(Supervision, WhenTheOuterProcessDiesADeafFamilyIsKilledAfterItsGrace) {
    const Job job = job_of(std::string("trap '' TERM; touch ready") + live, 100ms);
    const Verdict verdict = run(job, lasting_for(1h), [&] {
        awaits("ready");
        break_link();
    });
    EXPECT_EQ(verdict.signal, SIGKILL);
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(Supervision, WhenTheOuterProcessDiesAStoppedCommandIsNotKeptForEver) {
    const Job job = job_of(std::string("trap 'touch told; exit 4' TERM; ") + stop + live, 20s);
    const Verdict verdict = run(job, lasting_for(1h), [&] {
        awaits("ready");
        break_link();
    });
    EXPECT_EQ(verdict.code, 4);
    EXPECT_TRUE(exists("told"));
}

TEST_F(Supervision, WhenTheOuterProcessDiedBeforeTheCommandItIsNotStarted) {
    break_link();
    const Verdict verdict = run(job_of("touch started", 1s), lasting_for(60s));
    EXPECT_EQ(verdict.ending, Ending::interrupted);
    EXPECT_FALSE(exists("started"));
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
    Guarded guarded{must(hold_all({{&store_, name_, options}})), link_};
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

}  // namespace
}  // namespace holdfast::guards::run
