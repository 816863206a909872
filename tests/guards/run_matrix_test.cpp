// Goal: whatever happens to the supervisor, to the store or to the lock, and however the child behaves, the
// exit status is right and no process of the child outlives the lease. Method: a table of what happens times
// how the child behaves, with real processes and a short lease.

#include "guards/run_fixture.hpp"
#include "holdfast/audit.hpp"
#include "holdfast/open.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

constexpr std::array behaviours{"obey", "ignore", "fork", "daemon", "stop", "zombie", "closed", "pipe"};

std::string plain_name(const testing::TestParamInfo<const char*>& info) { return info.param; }

class RunMatrix : public RunFixture, public testing::WithParamInterface<const char*> {
protected:
    Running start_subject() { return start_and_await({GetParam()}, family_size(GetParam())); }
};

TEST_P(RunMatrix, WhenTheStoreIsGoneTheChildIsEndedInTime) {
    Running running = start_subject();
    take_store_away();
    expect_that_nobody_outlived_the_lease();
    EXPECT_EQ(running.wait().status, 76);
}

TEST_P(RunMatrix, WhenTheStoreIsGoneInAContainerTheChildIsEndedInTime) {
    if (!can_be_init()) GTEST_SKIP() << not_here << "no process can have a pid namespace";
    Running running = box_.start_program(as_init({GetParam()}));
    await_roster(family_size(GetParam()));
    take_store_away();
    EXPECT_EQ(running.wait().status, 76);
    EXPECT_LT(last_sign_of_life(), look().lease->expires_at);
}

TEST_P(RunMatrix, WhenTheOuterProcessIsKilledTheChildIsEndedAndTheLockGivenBack) {
    Running running = start_subject();
    running.signal(SIGKILL);
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
    expect_that_nobody_outlived_the_lease();
    EXPECT_TRUE(eventually([&] { return look().state == LockState::free; }));
    EXPECT_EQ(must(must(open_store("file:" + store_folder_.string()))->history({.name = name_}, soon())).back().kind,
              EventKind::released);
}

TEST_P(RunMatrix, WhenTheInnerProcessIsKilledTheChildIsEndedInTimeAndTheLossIsReported) {
    Running running = start_subject();
    ASSERT_EQ(kill(inner_of(running), SIGKILL), 0);
    const auto ended = running.wait();
    EXPECT_EQ(ended.status, 76) << ended.err;
    EXPECT_THAT(ended.err, testing::HasSubstr("was killed by signal 9"));
    EXPECT_FALSE(anybody_alive());
    expect_that_nobody_outlived_the_lease();
    EXPECT_NE(look().state, LockState::free) << "nobody has the key that could give it back";
}

TEST_P(RunMatrix, WhenTheOuterProcessIsStoppedTheLeaseIsRenewed) {
    Running running = start_subject();
    running.signal(SIGSTOP);
    ASSERT_TRUE(eventually([&] { return running.is_stopped(); }));
    const auto renewed = look().lease->renew_seq;
    EXPECT_TRUE(eventually([&] { return look().lease->renew_seq > renewed + 5; }));
    EXPECT_TRUE(anybody_alive());
    running.signal(SIGTERM);
    running.signal(SIGINT);
    running.signal(SIGCONT);
    EXPECT_GT(running.wait().status, 128);
    EXPECT_FALSE(anybody_alive());
}

TEST_P(RunMatrix, WhenTheInnerProcessIsStoppedTheChildIsEndedInTimeAndTheLossIsReported) {
    Running running = start_subject();
    const pid_t inner = inner_of(running);
    ASSERT_EQ(kill(inner, SIGSTOP), 0);
    const auto ended = running.wait();
    EXPECT_EQ(ended.status, 76) << ended.err;
    EXPECT_FALSE(anybody_alive());
    EXPECT_FALSE(is_alive(inner));
    expect_that_nobody_outlived_the_lease();
}

TEST_P(RunMatrix, WhenTheLockIsBrokenTheChildIsEnded) {
    Running running = start_subject();
    const auto store = must(open_store("file:" + store_folder_.string()));
    must(store->apply_one(Break{name_, look().lease->lock_id, "operator", "stuck"}, soon()));
    EXPECT_EQ(running.wait().status, 76);
    EXPECT_TRUE(eventually([&] { return !anybody_alive(); }));
    EXPECT_EQ(look().state, LockState::free);
}

INSTANTIATE_TEST_SUITE_P(Child, RunMatrix, testing::ValuesIn(behaviours), plain_name);

struct SignalCase {
    int signal;
    const char* name;
};
constexpr std::array ending_signals{
    SignalCase{SIGTERM, "TERM"}, SignalCase{SIGINT, "INT"},   SignalCase{SIGHUP, "HUP"},  SignalCase{SIGQUIT, "QUIT"},
    SignalCase{SIGUSR1, "USR1"}, SignalCase{SIGUSR2, "USR2"}, SignalCase{SIGALRM, "ALRM"}};

class RunSignals : public RunFixture, public testing::WithParamInterface<SignalCase> {};

TEST_P(RunSignals, ReachTheChildAndItsStatusIsPassedOn) {
    Running running = start_and_await({"obey"}, 1);
    running.signal(GetParam().signal);
    EXPECT_EQ(running.wait().status, 128 + GetParam().signal);
    EXPECT_EQ(look().state, LockState::free);
}

TEST_P(RunSignals, ReachTheWholeGroup) {
    Running running = start_and_await({"fork"}, 2);
    running.signal(GetParam().signal);
    EXPECT_EQ(running.wait().status, 128 + GetParam().signal);
    EXPECT_FALSE(anybody_alive());
    EXPECT_EQ(look().state, LockState::free);
}

INSTANTIATE_TEST_SUITE_P(Signal, RunSignals, testing::ValuesIn(ending_signals),
                         [](const auto& test) { return test.param.name; });

class RunWhileWaiting : public RunFixture, public testing::WithParamInterface<SignalCase> {};

TEST_P(RunWhileWaiting, AStopSignalEndsTheWaitAndNeverStartsTheChild) {
    const auto store = must(open_store("file:" + store_folder_.string()));
    const auto other = by_bob(name_, 60s);
    must(store->apply_one(other, soon()));
    Running running = start({"obey"}, {"--wait", "60s"});
    ASSERT_TRUE(eventually([&] { return look().waiters == 1; }));
    running.signal(GetParam().signal);
    EXPECT_EQ(running.wait().status, 128 + GetParam().signal);
    EXPECT_EQ(look().waiters, 0U);
    must(store->apply_one(release(other), soon()));
    EXPECT_TRUE(roster().empty());
}

INSTANTIATE_TEST_SUITE_P(Signal, RunWhileWaiting, testing::ValuesIn(std::span(ending_signals).first(4)),
                         [](const auto& test) { return test.param.name; });

struct StatusCase {
    Args how;
    int status;
    const char* name;
};
const std::array statuses{StatusCase{{"exit", "0"}, 0, "Zero"},
                          StatusCase{{"exit", "1"}, 1, "One"},
                          StatusCase{{"exit", "42"}, 42, "FortyTwo"},
                          StatusCase{{"exit", "75"}, 75, "LikeOurConflict"},
                          StatusCase{{"exit", "255"}, 255, "TwoFiftyFive"},
                          StatusCase{{"die", "9"}, 137, "Killed"},
                          StatusCase{{"die", "11"}, 139, "Crashed"},
                          StatusCase{{"die", "13"}, 141, "BrokenPipe"}};

class RunStatus : public RunFixture, public testing::WithParamInterface<StatusCase> {};

TEST_P(RunStatus, IsThatOfTheChild) {
    EXPECT_EQ(start(GetParam().how).wait().status, GetParam().status);
    EXPECT_EQ(look().state, LockState::free);
}

INSTANTIATE_TEST_SUITE_P(Child, RunStatus, testing::ValuesIn(statuses),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace holdfast::tests
