// Goal: at a terminal the child of `holdfast run` is what the user works with: it reads what is typed, hears
// Ctrl-C and Ctrl-Z, and afterwards the terminal belongs to the caller again. Method: a shell in a session of
// its own at a pseudoterminal runs the command, says its status, and reads one more line itself.

#include "guards/terminal.hpp"

#include "guards/run_fixture.hpp"
#include "support/matchers.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

namespace holdfast::tests {
namespace {

class RunAtTerminal : public RunFixture {
protected:
    /// A shell that runs `script` under the lock.
    [[nodiscard]] Terminal open(const std::string& script) const { return open(Args{"/bin/sh", "-c", script}); }
    [[nodiscard]] Terminal open(const Args& command) const {
        const std::string caller = R"("$@"; echo "status=$?"; read -r line; echo "caller read $line")";
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

}  // namespace
}  // namespace holdfast::tests
