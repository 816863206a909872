// Goal: whatever happens to the inner process of `run`, the outer one ends the command's processes in time, and nobody
// else's, and says what became of them. Method: the outer process inside the test, and an inner one that the test
// scripts, with real commands.

#include "guards/run/outer.hpp"

#include "guards/supervisor_fixture.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>

namespace holdfast::guards::run {
namespace {

using testing::HasSubstr;

class OuterTest : public Scripts {
protected:
    /// Forks an inner process that does `life` and then ends with status 0, and is the outer one of it.
    template <class Life>
    std::variant<int, Verdict> guard(
        Life life, const std::set<pid_t>& strangers = {}, const std::function<void()>& meanwhile = [] {}) {
        auto chain = must(fork_inner(signals_));
        if (auto* outer = std::get_if<OuterLink>(&chain)) {
            life(*outer);
            _exit(0);
        }
        InnerLink& link = std::get<InnerLink>(chain);
        inner_ = link.pid();
        const std::jthread other(meanwhile);
        return guard_inner(std::move(link), {strangers, {}}, signals_, host_clock());
    }
    /// In the inner process: the command `text`, which says that it is `ready`.
    void start(const OuterLink& outer, const std::string& text, std::chrono::milliseconds grace,
               Boottime kill_at) const {
        outer.expect(kill_at);
        outer.begin(grace, now());
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        Launch launch{.command = script(text), .environment = {"PATH=/usr/bin:/bin"}};
        launch.signal_mask = signals_.mask_before();
        launch.announce = &outer.state().group;
        if (spawn(launch).error != 0 || !awaits("ready")) _exit(99);
    }
    static void await_sleep_of(pid_t process) {
        const Deadline end = Deadline::in(host_clock(), time_limit);
        for (std::string stat; !stat.contains(") S ") && !end.passed(host_clock()); std::this_thread::sleep_for(2ms))
            std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), stat);
    }
    static Boottime now() { return host_clock().boottime(); }
    static Verdict verdict_of(const std::variant<int, Verdict>& ended) {
        EXPECT_TRUE(std::holds_alternative<Verdict>(ended));
        return std::holds_alternative<Verdict>(ended) ? std::get<Verdict>(ended) : Verdict{};
    }

    pid_t inner_ = 0;
};

TEST_F(OuterTest, PassesTheStatusOfTheInnerProcessOn) {
    const auto ended = guard([](OuterLink&) { _exit(42); });
    ASSERT_TRUE(std::holds_alternative<int>(ended));
    EXPECT_EQ(std::get<int>(ended), 42);
}

TEST_F(OuterTest, PassesSignalsOn) {
    const auto ended = guard(
        [](OuterLink& outer) {
            for (;;)
                if (const auto signal = outer.next()) _exit(*signal);
        },
        {}, [] { kill(getpid(), SIGUSR1); });
    EXPECT_EQ(std::get<int>(ended), SIGUSR1);
}

TEST_F(OuterTest, OfAnInnerProcessThatWasKilledLeavesTheCommandItsGrace) {
    const auto verdict = verdict_of(guard([&](OuterLink& outer) {
        start(outer, std::string("trap 'sleep .3; touch cleaned; exit 5' TERM; touch ready") + live, 30s, now() + 1h);
        raise(SIGKILL);
    }));
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_EQ(verdict.code, 5);
    EXPECT_TRUE(exists("cleaned")) << "it was killed at once";
    ASSERT_TRUE(verdict.error);
    EXPECT_THAT(verdict.error->message, HasSubstr("was killed by signal 9; the lease runs out by itself"));
    EXPECT_FALSE(has_children());
}

TEST_F(OuterTest, OfAnInnerProcessThatWasKilledKillsADeafCommandAfterItsGrace) {
    const auto verdict = verdict_of(guard([&](OuterLink& outer) {
        start(outer, std::string("trap 'touch told' TERM; touch ready") + live, 100ms, now() + 1h);
        raise(SIGKILL);
    }));
    EXPECT_EQ(verdict.signal, SIGKILL);
    EXPECT_TRUE(exists("told"));
}

TEST_F(OuterTest, OfAnInnerProcessThatWasKilledEndsTheCommandBeforeTheLeaseAlthoughTheGraceIsLonger) {
    const auto verdict = verdict_of(guard([&](OuterLink& outer) {
        start(outer, std::string("trap 'touch told' TERM; touch ready") + live, 1h, now() + 9h);
        outer.expect(now() + 300ms);
        raise(SIGKILL);
    }));
    EXPECT_EQ(verdict.signal, SIGKILL);
}

TEST_F(OuterTest, OfAnInnerProcessThatWasKilledEndsWhatLeftTheSessionWithoutAnEnvironment) {
    std::ofstream(folder_.path() / "helper") << std::string("trap '' TERM; touch ready") + live;
    const auto verdict = verdict_of(guard([&](OuterLink& outer) {
        start(outer, std::string("setsid env -i sh ./helper & wait"), 100ms, now() + 1h);
        raise(SIGKILL);
    }));
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_EQ(verdict.signal, SIGTERM);
    EXPECT_TRUE(verdict.left_over.empty());
    EXPECT_FALSE(has_children()) << "it works on";
}

TEST_F(OuterTest, OfAnInnerProcessThatWasKilledEndsNoChildrenOfTheCaller) {
    const Started stranger = spawn({.command = {"/bin/sleep", "60"}, .environment = {}});
    ASSERT_EQ(stranger.error, 0);
    verdict_of(guard(
        [&](OuterLink& outer) {
            start(outer, std::string("touch ready") + live, 100ms, now() + 1h);
            raise(SIGKILL);
        },
        {stranger.pid}));
    EXPECT_EQ(children(), std::set<pid_t>{stranger.pid});
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(stranger.pid), &info, WEXITED | WNOHANG | WNOWAIT);
    EXPECT_EQ(info.si_pid, 0) << "it was ended";
    kill(stranger.pid, SIGKILL);
    waitpid(stranger.pid, nullptr, 0);
}

TEST_F(OuterTest, OfAnInnerProcessThatIsStoppedWarnsAndKillsInTimeAndThenEndsIt) {
    const Boottime kill_at = now() + 2s;
    const auto verdict = verdict_of(guard([&](OuterLink& outer) {
        start(outer, std::string("trap 'touch told' TERM; touch ready") + live, 1s, kill_at);
        raise(SIGSTOP);
    }));
    EXPECT_GE(now(), kill_at) << "the command could have worked longer";
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_EQ(verdict.signal, SIGKILL);
    EXPECT_TRUE(exists("told"));
    ASSERT_TRUE(verdict.error);
    EXPECT_THAT(verdict.error->message, HasSubstr("stopped for too long"));
    EXPECT_EQ(kill(inner_, 0), -1);
    EXPECT_FALSE(has_children());
}

TEST_F(OuterTest, OfAnInnerProcessThatIsStoppedEndsWhatLeftTheSessionWithoutAnEnvironment) {
    std::ofstream(folder_.path() / "helper")
        << "trap '' TERM; touch ready; i=0; while [ $i -lt 250 ]; do sleep .02; i=$((i+1)); done; touch survived";
    const auto verdict = verdict_of(guard([&](OuterLink& outer) {
        start(outer, std::string("setsid env -i sh ./helper & wait"), 100ms, now() + 1s);
        raise(SIGSTOP);
    }));
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_FALSE(exists("survived")) << "it worked on";
    EXPECT_FALSE(has_children());
}

TEST_F(OuterTest, FindsByItselfThatACommandHasBegun) {
    const auto verdict = verdict_of(guard([&](OuterLink& outer) {
        await_sleep_of(getppid());
        // The beginning is not announced under so long a lease. This process hangs then, and no signal tells of that.
        start(outer, std::string("touch ready") + live, 100ms, now() + 1h);
        outer.expect(now() + 100ms);
        for (;;) pause();
    }));
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_FALSE(has_children());
}

TEST_F(OuterTest, WarnsAgainAfterARenewalHadCalledOffTheKill) {
    const auto ended = guard([&](OuterLink& outer) {
        start(outer, std::string("n=0; trap 'n=$((n+1)); touch told$n' TERM; touch ready") + live, 4h, now() + 9h);
        // Known by its descent alone, it gets each signal once.
        outer.state().group = 0;
        outer.expect(now() + 1h);
        const bool once = awaits("told1");
        outer.expect(now() + 9h);
        outer.expect(now() + 2h);
        const bool twice = awaits("told2");
        kill(*children().begin(), SIGKILL);
        outer.state().phase = ChainState::Phase::done;
        _exit(once && twice ? 7 : 8);
    });
    ASSERT_TRUE(std::holds_alternative<int>(ended));
    EXPECT_EQ(std::get<int>(ended), 7);
    while (waitpid(-1, nullptr, 0) > 0) {
    }
}

TEST_F(OuterTest, LeavesAnInnerProcessThatEndsTheCommandItselfTheTimeToFinish) {
    const auto ended = guard([&](OuterLink& outer) {
        const Boottime kill_at = now() + 1s;
        start(outer, std::string("touch ready") + live, 100ms, kill_at);
        outer.state().ending = true;
        // One that has not noticed is killed before that.
        while (now() < kill_at + 500ms) std::this_thread::sleep_for(2ms);
        outer.state().phase = ChainState::Phase::done;
        _exit(76);
    });
    ASSERT_TRUE(std::holds_alternative<int>(ended)) << "it was killed";
    EXPECT_EQ(std::get<int>(ended), 76);
    while (waitpid(-1, nullptr, 0) > 0) {
    }
}

TEST_F(OuterTest, OfAnInnerProcessThatFailedWithoutEndingTheCommandEndsIt) {
    const auto verdict = verdict_of(guard([&](OuterLink& outer) {
        start(outer, std::string("touch ready") + live, 100ms, now() + 1h);
        _exit(3);
    }));
    EXPECT_EQ(verdict.ending, Ending::lost);
    EXPECT_THAT(verdict.error->message, HasSubstr("failed with status 3"));
    EXPECT_FALSE(has_children());
}

TEST_F(OuterTest, OfAnInnerProcessThatWasKilledWhileItWaitedSaysThatNothingWasStarted) {
    const auto verdict = verdict_of(guard([](OuterLink&) { raise(SIGKILL); }));
    EXPECT_EQ(verdict.ending, Ending::failed);
    EXPECT_FALSE(verdict.code || verdict.signal);
    EXPECT_EQ(verdict.error->code, Errc::outcome_unknown);
}

TEST_F(OuterTest, ASecondRequestToEndKillsAnInnerProcessThatDoesNotEndItsWait) {
    const auto verdict = verdict_of(guard(
        [&](OuterLink& outer) {
            for (;;)
                if (outer.next() == SIGTERM) make("heard");
        },
        {},
        [&] {
            kill(getpid(), SIGTERM);
            awaits("heard");
            kill(getpid(), SIGINT);
        }));
    EXPECT_EQ(verdict.ending, Ending::interrupted);
    EXPECT_EQ(verdict.signal, SIGINT);
    EXPECT_FALSE(has_children());
}

TEST_F(OuterTest, OfAnInnerProcessThatWasKilledAtTheReleaseHasTheStatusOfTheCommand) {
    const auto verdict = verdict_of(guard([](OuterLink& outer) {
        outer.state().child_status = W_EXITCODE(3, 0);
        outer.state().phase = ChainState::Phase::done;
        raise(SIGKILL);
    }));
    EXPECT_EQ(verdict.ending, Ending::child_exit);
    EXPECT_EQ(verdict.code, 3);
    EXPECT_TRUE(verdict.error) << "nobody knows whether the lease was released";
}

TEST_F(OuterTest, OfAnInnerProcessThatWasKilledAfterALossTellsTheLoss) {
    const auto verdict = verdict_of(guard([](OuterLink& outer) {
        outer.state().ending = true;
        outer.state().child_status = W_EXITCODE(0, 0);
        outer.state().phase = ChainState::Phase::done;
        raise(SIGKILL);
    }));
    EXPECT_EQ(verdict.ending, Ending::lost) << "the command was ended for the lease, whatever its status";
}

TEST_F(OuterTest, ARequestToEndKillsWhatAKilledInnerProcessLeftAtOnce) {
    const auto verdict = verdict_of(guard(
        [&](OuterLink& outer) {
            start(outer, std::string("trap 'touch told' TERM; touch ready") + live, 1h, now() + 9h);
            raise(SIGKILL);
        },
        {},
        [&] {
            awaits("told");
            kill(getpid(), SIGINT);
        }));
    EXPECT_EQ(verdict.signal, SIGKILL);
}

TEST_F(OuterTest, KeepsADescriptorOpenUntilTheFamilyIsDead) {
    int ends[2] = {-1, -1};
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const auto verdict = verdict_of(guard(
        [&](OuterLink& outer) {
            close(ends[0]);
            outer.keep_open(0, ends[1]);
            // The trap fails if the pipe is closed: nobody writes, but its end would be readable.
            start(outer,
                  std::string("trap 'touch told; until [ -e seen ]; do sleep .02; done; exit 6' TERM; touch ready") +
                      live,
                  30s, now() + 1h);
            raise(SIGKILL);
        },
        {},
        [&] {
            close(ends[1]);
            awaits("told");
            pollfd end{ends[0], POLLIN, 0};
            EXPECT_EQ(poll(&end, 1, 100), 0) << "the descriptor was closed while the command lives";
            make("seen");
        }));
    EXPECT_EQ(verdict.code, 6);
    EXPECT_TRUE(readable_in_time(ends[0]));
    close(ends[0]);
}

}  // namespace
}  // namespace holdfast::guards::run
