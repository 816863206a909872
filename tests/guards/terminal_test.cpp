// Goal: at a terminal the child of `holdfast run` is what the user works with: it reads what is typed, hears
// Ctrl-C and Ctrl-Z, and afterwards the terminal belongs to the caller again. Method: a shell in a session of
// its own at a pseudoterminal runs the command, says its status, and reads one more line itself.

#include "guards/terminal.hpp"

#include "guards/run_fixture.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

namespace holdfast::tests {
namespace {

class RunAtTerminal : public RunFixture {
protected:
    /// A shell that runs `script` under the lock.
    [[nodiscard]] Terminal open(const std::string& script) const { return open(Args{"/bin/sh", "-c", script}); }
    [[nodiscard]] Terminal open(const Args& command, const std::string& call = R"("$@")") const {
        const std::string caller = call + R"(; echo "status=$?"; read -r line; echo "caller read $line")";
        Args args{"/bin/sh", "-c", caller, "caller", std::string(HOLDFAST_BIN) + "/holdfast"};
        const Args run{"run",        "--store", "file:" + (box_.root / "store").string(), "--ttl", "1500ms",
                       name_.text(), "--"};
        args.insert(args.end(), run.begin(), run.end());
        args.insert(args.end(), command.begin(), command.end());
        return {args, box_.environment, box_.work.string()};
    }
    /// The caller can read again, which it could not if the terminal were still the child's.
    static void expect_that_the_caller_has_the_terminal(Terminal& terminal) {
        terminal.type("back\n");
        EXPECT_TRUE(terminal.shows("caller read back")) << terminal.screen();
    }
    /// The number that follows `before` on the screen; 0 if there is none.
    static pid_t number_after(Terminal& terminal, const std::string& before) {
        return std::stoi("0" + terminal.rest_of_line(before));
    }
};

TEST_F(RunAtTerminal, TheChildIsInTheForegroundAndReadsALine) {
    Terminal terminal = open(R"(echo "child $$"; read -r line; echo "child read $line")");
    const pid_t child = number_after(terminal, "child ");
    ASSERT_GT(child, 0) << terminal.screen();
    EXPECT_EQ(terminal.foreground(), child);
    terminal.type("hello\n");
    EXPECT_TRUE(terminal.shows("child read hello")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("status=0")) << terminal.screen();
    EXPECT_NE(terminal.foreground(), child);
    expect_that_the_caller_has_the_terminal(terminal);
}

TEST_F(RunAtTerminal, TheChildIsInTheForegroundWhicheverDescriptorIsTheTerminal) {
    for (const char* call : {R"("$@" </dev/null 2>/dev/null)", R"("$@" </dev/null | cat)", R"("$@" 2>&1 | cat)"}) {
        Terminal terminal = open(Args{"/bin/sh", "-c", R"(echo "child $$"; read -r line </dev/tty; exit 3)"}, call);
        const pid_t child = number_after(terminal, "child ");
        ASSERT_GT(child, 0) << terminal.screen();
        EXPECT_EQ(terminal.foreground(), child) << call;
        terminal.type("hello\n");
        expect_that_the_caller_has_the_terminal(terminal);
    }
}

TEST_F(RunAtTerminal, InTheBackgroundTheTerminalIsLeftToItsOwner) {
    Terminal terminal = open(Args{"/bin/sh", "-c", R"(echo "child $$"; until [ -e end ]; do sleep .02; done; exit 3)"},
                             R"(set -m; "$@" & read -r first; echo "caller got $first"; : >end; wait $!)");
    const pid_t child = number_after(terminal, "child ");
    ASSERT_GT(child, 0) << terminal.screen();
    EXPECT_NE(terminal.foreground(), child);
    terminal.type("mine\n");
    EXPECT_TRUE(terminal.shows("caller got mine")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("status=3")) << terminal.screen();
    expect_that_the_caller_has_the_terminal(terminal);
}

TEST_F(RunAtTerminal, ASuccessIsSaid) {
    Terminal terminal = open("true");
    EXPECT_TRUE(terminal.shows("deploy/web: ended with status 0")) << terminal.screen();
}

TEST_F(RunAtTerminal, ACommandThatCannotBeRunLeavesTheTerminalToTheCaller) {
    Terminal terminal = open(Args{"/no/such/command"});
    EXPECT_TRUE(terminal.shows("status=127")) << terminal.screen();
    expect_that_the_caller_has_the_terminal(terminal);
}

TEST_F(RunAtTerminal, APasswordIsReadWithoutShowingIt) {
    Terminal terminal =
        open(R"(stty -echo; printf 'Password: '; read -r word; stty echo; echo; echo "length ${#word}")");
    ASSERT_TRUE(terminal.shows("Password: ")) << terminal.screen();
    terminal.type("sesame\n");
    EXPECT_TRUE(terminal.shows("length 6")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("status=0")) << terminal.screen();
    EXPECT_EQ(terminal.screen().find("sesame"), std::string::npos);
    expect_that_the_caller_has_the_terminal(terminal);
}

TEST_F(RunAtTerminal, CtrlCReachesTheChild) {
    Terminal terminal = open("echo ready; read -r line");
    ASSERT_TRUE(terminal.shows("ready")) << terminal.screen();
    terminal.type(ctrl_c);
    EXPECT_TRUE(terminal.shows("status=130")) << terminal.screen();
    EXPECT_EQ(look().state, LockState::free);
    expect_that_the_caller_has_the_terminal(terminal);
}

TEST_F(RunAtTerminal, OfAnInnerProcessThatWasKilledGoesBackToTheCaller) {
    Terminal terminal = open(R"(echo "child of $PPID"; (trap '' TERM; setsid sleep 60) & read -r line)");
    const pid_t inner = number_after(terminal, "child of ");
    ASSERT_GT(inner, 0) << terminal.screen();
    kill(inner, SIGKILL);
    EXPECT_TRUE(terminal.shows("status=76")) << terminal.screen();
    expect_that_the_caller_has_the_terminal(terminal);
}

TEST_F(RunAtTerminal, AChildThatLivesOnAfterCtrlCIsNotEndedForIt) {
    Terminal terminal = open("trap 'echo heard' INT; echo ready; read -r line; read -r line; exit 3");
    ASSERT_TRUE(terminal.shows("ready")) << terminal.screen();
    terminal.type(ctrl_c);
    ASSERT_TRUE(terminal.shows("heard")) << terminal.screen();
    terminal.type("go on\nand end\n");
    EXPECT_TRUE(terminal.shows("status=3")) << terminal.screen();
}

TEST_F(RunAtTerminal, CtrlZStopsTheChildWhileTheLeaseIsRenewedAndSigcontBringsItBack) {
    Terminal terminal = open(R"(echo "child $$"; read -r line; echo "child read $line")");
    const pid_t child = number_after(terminal, "child ");
    ASSERT_GT(child, 0) << terminal.screen();
    terminal.type(ctrl_z);
    const pid_t supervisor = number_after(terminal, "kill -CONT ");
    ASSERT_GT(supervisor, 0) << terminal.screen();
    EXPECT_EQ(state_of(child), 'T');
    EXPECT_NE(terminal.foreground(), child);
    const auto renewed = look().lease->renew_seq;
    EXPECT_TRUE(eventually([&] { return look().lease->renew_seq > renewed + 3; }));
    EXPECT_EQ(state_of(child), 'T');

    kill(supervisor, SIGCONT);
    ASSERT_TRUE(eventually([&] { return terminal.foreground() == child && state_of(child) != 'T'; }));
    terminal.type("again\n");
    EXPECT_TRUE(terminal.shows("child read again")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("status=0")) << terminal.screen();
    expect_that_the_caller_has_the_terminal(terminal);
}

/// An interactive shell with job control, as a person has one.
class RunInAShell : public RunFixture {
protected:
    void SetUp() override {
        if (!std::filesystem::exists("/bin/bash")) GTEST_SKIP() << not_here << "no shell with job control";
    }
    [[nodiscard]] Terminal open_shell() const {
        auto environment = box_.environment;
        environment["HOLDFAST_STORE"] = "file:" + (box_.root / "store").string();
        environment["PATH"] = std::string(HOLDFAST_BIN) + ":/usr/bin:/bin";
        environment["PS1"] = "$ ";
        environment["HISTFILE"] = "";
        return {{"/bin/bash", "--norc", "--noprofile", "--noediting", "-i"}, environment, box_.work.string()};
    }
    /// Types a line. What it prints is told from its echo by `''` in the typed text.
    static void enter(const Terminal& terminal, const std::string& line) { terminal.type(line + "\n"); }
    bool is_renewed() {
        const auto before = look().lease->renew_seq;
        return eventually([&] { return look().state == LockState::held && look().lease->renew_seq > before + 3; });
    }
    const std::string run_ = "holdfast run --ttl 1500ms deploy/web -- ";
    const std::string child_ = R"(sh -c 'echo "chi""ld $$"; read -r line; echo "re""ad $line"; exit 3')";
    /// The same without the terminal. It starts no processes: a shell that is in a vfork cannot be stopped.
    const std::string apart_ = R"(sh -c 'mkfifo end; echo "chi""ld $$"; read -r line <end; exit 3')";
    void let_it_end() const { std::ofstream(box_.work / "end") << "now\n"; }
};

TEST_F(RunInAShell, CtrlZGivesThePromptBackWhileTheLeaseIsRenewedAndFgGoesOn) {
    Terminal terminal = open_shell();
    enter(terminal, run_ + child_);
    const pid_t child = std::stoi("0" + terminal.rest_of_line("child "));
    ASSERT_GT(child, 0) << terminal.screen();
    ASSERT_EQ(terminal.foreground(), child);
    terminal.type(ctrl_z);
    ASSERT_TRUE(terminal.shows("still holding")) << terminal.screen();
    enter(terminal, "echo pro''mpt");
    ASSERT_TRUE(terminal.shows("prompt")) << terminal.screen();
    EXPECT_EQ(state_of(child), 'T');
    EXPECT_TRUE(is_renewed()) << "nobody renews while the job is stopped";
    enter(terminal, "fg");
    ASSERT_TRUE(eventually([&] { return terminal.foreground() == child && state_of(child) != 'T'; }))
        << terminal.screen();
    enter(terminal, "hello");
    ASSERT_TRUE(terminal.shows("read hello")) << terminal.screen();
    enter(terminal, "echo sta''tus=$?");
    EXPECT_TRUE(terminal.shows("status=3")) << terminal.screen();
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(RunInAShell, BgGoesOnWithoutTheTerminal) {
    Terminal terminal = open_shell();
    enter(terminal, run_ + apart_);
    const pid_t child = std::stoi("0" + terminal.rest_of_line("child "));
    ASSERT_GT(child, 0) << terminal.screen();
    terminal.type(ctrl_z);
    ASSERT_TRUE(terminal.shows("still holding")) << terminal.screen();
    enter(terminal, "bg; echo back''ground");
    ASSERT_TRUE(terminal.shows("background")) << terminal.screen();
    ASSERT_TRUE(eventually([&] { return state_of(child) != 'T'; })) << terminal.screen();
    EXPECT_NE(terminal.foreground(), child);
    let_it_end();
    enter(terminal, "wait %1; echo sta''tus=$?");
    EXPECT_TRUE(terminal.shows("status=3")) << terminal.screen();
    enter(terminal, "echo still''mine");
    EXPECT_TRUE(terminal.shows("stillmine")) << "the shell has lost its terminal: " << terminal.screen();
}

TEST_F(RunInAShell, AJobThatWasStoppedByASignalGoesOnWithOneFg) {
    Terminal terminal = open_shell();
    enter(terminal, run_ + apart_ + " &");
    const pid_t child = std::stoi("0" + terminal.rest_of_line("child "));
    ASSERT_GT(child, 0) << terminal.screen();
    enter(terminal, "kill -TSTP %1; echo o''uter $!");
    const pid_t outer = std::stoi("0" + terminal.rest_of_line("outer "));
    ASSERT_TRUE(eventually([&] { return state_of(child) == 'T' && state_of(outer) == 'T'; }));
    ASSERT_TRUE(is_renewed());
    enter(terminal, "fg");
    ASSERT_TRUE(eventually([&] { return terminal.foreground() == child && state_of(child) != 'T'; }))
        << terminal.screen();
    let_it_end();
    enter(terminal, "echo sta''tus=$?");
    EXPECT_TRUE(terminal.shows("status=3")) << terminal.screen();
}

TEST_F(RunInAShell, AJobInTheBackgroundThatReadsIsStoppedAndFgBringsItTheTerminal) {
    Terminal terminal = open_shell();
    enter(terminal, run_ + child_ + " &");
    const pid_t child = std::stoi("0" + terminal.rest_of_line("child "));
    ASSERT_GT(child, 0) << terminal.screen();
    ASSERT_TRUE(eventually([&] { return state_of(child) == 'T'; }));
    EXPECT_TRUE(is_renewed());
    enter(terminal, "fg");
    ASSERT_TRUE(eventually([&] { return terminal.foreground() == child && state_of(child) != 'T'; }))
        << terminal.screen();
    enter(terminal, "hello");
    EXPECT_TRUE(terminal.shows("read hello")) << terminal.screen();
}

TEST_F(RunInAShell, AScriptAroundItStopsWithIt) {
    box_.write(box_.work / "script", run_ + child_ + "\necho \"script''\" ended\n");
    Terminal terminal = open_shell();
    enter(terminal, "sh script");
    const pid_t child = std::stoi("0" + terminal.rest_of_line("child "));
    ASSERT_GT(child, 0) << terminal.screen();
    terminal.type(ctrl_z);
    ASSERT_TRUE(terminal.shows("still holding")) << terminal.screen();
    enter(terminal, "echo pro''mpt");
    ASSERT_TRUE(terminal.shows("prompt")) << "the shell waits for a script that was not stopped: " << terminal.screen();
    enter(terminal, "fg");
    ASSERT_TRUE(eventually([&] { return terminal.foreground() == child && state_of(child) != 'T'; }))
        << terminal.screen();
    enter(terminal, "hello");
    EXPECT_TRUE(terminal.shows("read hello")) << terminal.screen();
}

TEST_F(RunInAShell, AStoppedJobThatIsKilledIsNotRenewedForEver) {
    Terminal terminal = open_shell();
    enter(terminal, run_ + child_);
    const pid_t child = std::stoi("0" + terminal.rest_of_line("child "));
    ASSERT_GT(child, 0) << terminal.screen();
    terminal.type(ctrl_z);
    ASSERT_TRUE(terminal.shows("still holding")) << terminal.screen();
    enter(terminal, "kill -9 %1");
    EXPECT_TRUE(eventually([&] { return !is_alive(child); }));
    EXPECT_TRUE(eventually([&] { return look().state == LockState::free; })) << "it is renewed for nobody";
}

TEST_F(RunInAShell, CtrlZWhileItWaitsGivesThePromptBack) {
    const auto store = must(open_store("file:" + store_folder_.string()));
    const auto other = by_bob(name_, std::chrono::seconds{60});
    must(store->apply_one(other, soon()));
    Terminal terminal = open_shell();
    enter(terminal, "holdfast run --ttl 1500ms --wait 60s deploy/web -- " + child_);
    ASSERT_TRUE(terminal.shows("waiting: ")) << terminal.screen();
    terminal.type(ctrl_z);
    enter(terminal, "echo pro''mpt");
    ASSERT_TRUE(terminal.shows("prompt")) << terminal.screen();
    EXPECT_EQ(look().waiters, 1U) << "it keeps its place";
    enter(terminal, "fg");
    must(store->apply_one(release(other), soon()));
    ASSERT_TRUE(terminal.shows("child ")) << terminal.screen();
    enter(terminal, "hello");
    EXPECT_TRUE(terminal.shows("read hello")) << terminal.screen();
}

}  // namespace
}  // namespace holdfast::tests
