// Goal: a lease that ends with a process (`run --session`) lives as long as a process of the command, whichever
// process of `run` is killed. Method: the program on real servers, with a command that is deaf to SIGTERM, and another
// that asks for the lock meanwhile.

#include "cli/sandbox.hpp"
#include "support/matchers.hpp"
#include "support/store_harness.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

namespace holdfast::tests {
namespace {

using cli_test::eventually;
using cli_test::Running;

pid_t first_child_of(pid_t parent) {
    pid_t child = 0;
    std::ifstream("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children") >> child;
    return child;
}

TEST(RunSession, OutlivesTheProcessThatOpenedItAsLongAsTheCommandLives) {
    for (const auto& start : {start_file, start_sqlite, start_postgres, start_mysql}) {
        const auto harness = must(start());
        for (const bool kills_outer : {false, true}) {
            SCOPED_TRACE(harness->url() + (kills_outer ? ", outer" : ", inner"));
            cli_test::Sandbox box;
            box.environment["HOLDFAST_STORE"] = harness->url();
            Running first = box.start({"run", "x", "--session", "--ttl", "60s", "--grace", "25s", "--", "/bin/sh", "-c",
                                       "trap ': >told' TERM; echo $$ >pid.new; mv pid.new pid; "
                                       "while :; do sleep .02; done"});
            pid_t command = 0;
            ASSERT_TRUE(eventually([&] { return static_cast<bool>(std::ifstream(box.work / "pid") >> command); }));
            kill(kills_outer ? first.pid() : first_child_of(first.pid()), SIGKILL);
            // The other process knows, and has begun to end the command.
            ASSERT_TRUE(eventually([&] { return std::filesystem::exists(box.work / "told"); }));
            const auto refused = box.run({"run", "x", "--session", "--no-wait", "--", "true"});
            EXPECT_EQ(kill(command, 0), 0);
            EXPECT_EQ(refused.status, 75) << "it was let in while the first command was at work";
            kill(command, SIGKILL);
            EXPECT_EQ(first.wait().status, kills_outer ? 128 + SIGKILL : 76);
            EXPECT_EQ(box.run({"run", "x", "--session", "--wait", "30s", "--", "true"}).status, 0)
                << "the session ends with the command, and not with the ttl";
        }
    }
}

// Nobody is left that could end the command. On servers the session is over then: a command gets no connection.
TEST(RunSession, OfAStoreInFilesOutlivesBothProcessesOfRunAsLongAsTheCommandLives) {
    for (const auto& start : {start_file, start_sqlite}) {
        const auto harness = must(start());
        SCOPED_TRACE(harness->url());
        cli_test::Sandbox box;
        box.environment["HOLDFAST_STORE"] = harness->url();
        Running first = box.start({"run", "x", "--session", "--ttl", "10m", "--", "/bin/sh", "-c",
                                   "setsid sh -c 'echo $$ >pid.new; mv pid.new pid; while :; do sleep .02; done' & "
                                   "while :; do sleep .02; done"});
        pid_t descendant = 0;
        ASSERT_TRUE(eventually([&] { return static_cast<bool>(std::ifstream(box.work / "pid") >> descendant); }));
        const pid_t inner = first_child_of(first.pid());
        const pid_t command = first_child_of(inner);
        // Stopped first, so that neither of them notices the end of the other.
        for (const pid_t each : {first.pid(), inner}) kill(each, SIGSTOP);
        for (const pid_t each : {inner, first.pid(), command}) kill(each, SIGKILL);
        EXPECT_EQ(box.run({"run", "x", "--no-wait", "--", "true"}).status, 75) << "a descendant was still at work";
        ASSERT_EQ(kill(descendant, SIGKILL), 0);
        EXPECT_EQ(first.wait().status, 128 + SIGKILL);
        EXPECT_EQ(box.run({"run", "x", "--wait", "30s", "--", "true"}).status, 0);
    }
}

TEST(RunSession, OfEachOfTwoStoresOutlivesTheInnerProcess) {
    const auto one = must(start_postgres());
    const auto two = must(start_mysql());
    cli_test::Sandbox box;
    box.environment["HOLDFAST_STORE"] = one->url() + " " + two->url();
    Running first = box.start({"run", "x", "--session", "--ttl", "60s", "--grace", "25s", "--", "/bin/sh", "-c",
                               "trap ': >told' TERM; echo $$ >pid.new; mv pid.new pid; while :; do sleep .02; done"});
    pid_t command = 0;
    ASSERT_TRUE(eventually([&] { return static_cast<bool>(std::ifstream(box.work / "pid") >> command); }));
    kill(first_child_of(first.pid()), SIGKILL);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(box.work / "told"); }));
    for (const auto& url : {one->url(), two->url()})
        EXPECT_EQ(box.run({"run", "x", "--session", "--no-wait", "--store", url, "--", "true"}).status, 75) << url;
    EXPECT_EQ(kill(command, SIGKILL), 0);
    EXPECT_EQ(first.wait().status, 76);
}

}  // namespace
}  // namespace holdfast::tests
