// Goal: what a person sees of `holdfast run`: refusals, joining, several locks, what the child inherits, what
// is left behind, and life as PID 1.

#include "guards/run_fixture.hpp"
#include "support/isolation.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <unistd.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class RunTest : public RunFixture {
protected:
    [[nodiscard]] std::string store_url() const { return "file:" + (box_.root / "store").string(); }
    /// Runs a shell script under the lock.
    [[nodiscard]] cli_test::Ended run_script(const std::string& script, Args flags = {},
                                             const cli_test::Environment& more = {}) {
        Args args{"run", "--store", store_url()};
        args.insert(args.end(), flags.begin(), flags.end());
        args.insert(args.end(), {name_.text(), "--", "sh", "-c", script});
        return box_.run(args, more);
    }
    std::unique_ptr<Store> held_by_bob() {
        auto store = must(open_store(store_url()));
        must(store->apply_one(by_bob(name_, 60s), soon()));
        return store;
    }
};

TEST_F(RunTest, IsRefusedWithTheHolderAndDoesNotStartTheChild) {
    held_by_bob();
    const auto ended = run_script("echo started", {"--json"});
    EXPECT_EQ(ended.status, 75);
    EXPECT_EQ(ended.json().text("/outcome"), "not_acquired");
    EXPECT_EQ(ended.json().text("/error/holder/holder"), "bob");
}

TEST_F(RunTest, SkipsQuietlyForCron) {
    held_by_bob();
    const auto ended = run_script("echo started", {"--if-held", "skip"});
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.out, "");
}

TEST_F(RunTest, TheConflictStatusCanBeChosen) {
    held_by_bob();
    EXPECT_EQ(run_script("true", {"-E", "5"}).status, 5);
    const auto document = run_script("true", {"-E", "5", "--json"});
    EXPECT_EQ(document.status, 5);
    EXPECT_EQ(document.json().number("/exit_code"), 5);
}

TEST_F(RunTest, AMissingCommandIs127AndOneThatCannotRunIs126) {
    EXPECT_EQ(box_.run({"run", "--store", store_url(), "x", "--", "/no/such/command"}).status, 127);
    EXPECT_EQ(box_.run({"run", "--store", store_url(), "x", "--", box_.root.string()}).status, 126);
    EXPECT_EQ(box_.run({"run", "--store", store_url(), "x"}).status, 64);
    EXPECT_EQ(box_.run({"status", "--store", store_url(), "x", "--json"}).json().text("/state"), "free");
}

TEST_F(RunTest, SaysTheOutcomeInOneLineOrOneDocument) {
    const auto words = run_script("exit 3");
    EXPECT_EQ(std::ranges::count(words.err, '\n'), 1) << words.err;
    EXPECT_EQ(words.out, "");
    const auto json = run_script("exit 3", {"--json"}).json();
    EXPECT_EQ(json.text("/outcome"), "child_exit");
    EXPECT_EQ(json.number("/exit_code"), 3);
    EXPECT_EQ(json.number("/child/code"), 3);
    EXPECT_FALSE(json.has("/child/signal"));
    EXPECT_EQ(json.text("/locks/0/name"), "deploy/web");
}

TEST_F(RunTest, TheChildFindsItsLeaseInItsEnvironment) {
    const auto ended = run_script(
        "holdfast check \"$HOLDFAST_LOCK\" --token \"$HOLDFAST_TOKEN\" && "
        "test \"${HOLDFAST_LEASE%%.*}\" = \"$HOLDFAST_LOCK_ID\" && test -n \"$HOLDFAST_EXPIRES_AT\"",
        {}, {{"PATH", std::string(HOLDFAST_BIN) + ":/usr/bin:/bin"}});
    EXPECT_EQ(ended.status, 0) << ended.err;
}

TEST_F(RunTest, TheChildInheritsNoDescriptorAndNoSignalMaskOfOurs) {
    // The last digits are the classic signals; the C library keeps two beyond them for itself.
    const std::string script =
        "ls /proc/self/fd | wc -l; grep -E '^Sig(Blk|Ign)' /proc/self/status | grep -oE '[0-9a-f]{7}$'";
    const auto direct = box_.run_program({"/bin/sh", "-c", script});
    ASSERT_NE(direct.out, "");
    EXPECT_EQ(run_script(script).out, direct.out);
}

TEST_F(RunTest, TheChildIsToldTheStoreThatHoldsNoSecret) {
    EXPECT_THAT(run_script("env").out, testing::HasSubstr("HOLDFAST_STORE=" + store_url()));
}

TEST_F(RunTest, ACommandInsideJoinsTheLockAndDoesNotReleaseIt) {
    const auto ended = run_script(
        "holdfast run deploy/web -- true && holdfast acquire deploy/web -q >/dev/null && "
        "holdfast status deploy/web --json",
        {}, {{"PATH", std::string(HOLDFAST_BIN) + ":/usr/bin:/bin"}});
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.out, testing::HasSubstr("\"state\":\"held\""));
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(RunTest, TakesSeveralLocksAndGivesTheChildEveryToken) {
    const auto ended = run_script("echo \"$HOLDFAST_LOCK $HOLDFAST_LOCK_2\"; test \"$HOLDFAST_TOKEN_2\" -gt 0",
                                  {"--and", "a/first", "--json"});
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.out, testing::StartsWith("deploy/web a/first\n"));
}

TEST_F(RunTest, TakesNoneOfSeveralLocksWhenOneIsHeld) {
    held_by_bob();
    EXPECT_EQ(run_script("true", {"--and", "a/first"}).status, 75);
    EXPECT_EQ(box_.run({"status", "--store", store_url(), "a/first", "--json"}).json().text("/state"), "free");
}

TEST_F(RunTest, HoldsOneLockOnSeveralStores) {
    const std::string second = "sqlite:" + (box_.root / "second.db").string();
    const auto ended =
        run_script("holdfast status -s " + store_url() + " deploy/web; holdfast status -s " + second + " deploy/web",
                   {"--store", second}, {{"PATH", std::string(HOLDFAST_BIN) + ":/usr/bin:/bin"}});
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.out, testing::Not(testing::HasSubstr("free")));
}

TEST_F(RunTest, WhatIsLeftBehindOnPurposeIsNamedAndTheLeaseRunsOut) {
    auto running = start({"background"}, {"--json", "--grace", "100ms", "--leave-behind"});
    const auto ended = running.wait();
    EXPECT_EQ(ended.status, 0);
    EXPECT_EQ(ended.json().size("/left_over"), 1U);
    EXPECT_NE(look().state, LockState::free);
    for (const pid_t pid : roster()) kill(pid, SIGKILL);
}

TEST_F(RunTest, WithoutALockRunsWithAWarning) {
    held_by_bob();
    const auto ended = run_script("exit 4", {"--no-lock"});
    EXPECT_EQ(ended.status, 4);
    EXPECT_THAT(ended.err, testing::HasSubstr("warning"));
}

TEST_F(RunTest, EndsTheChildAtItsLongestHold) {
    auto running = start({"obey"}, {"--max-hold", "1s", "--json"});
    const auto ended = running.wait();
    EXPECT_EQ(ended.status, 76);
    EXPECT_EQ(ended.json().text("/outcome"), "lost");
    EXPECT_GE(ended.json().number("/margin_ms"), 0);
    EXPECT_FALSE(anybody_alive());
}

TEST_F(RunTest, StopAndContinueReachTheChildWhileTheLeaseIsRenewed) {
    auto running = start_and_await({"obey"}, 1);
    const pid_t child = *roster().begin();
    running.signal(SIGTSTP);
    ASSERT_TRUE(eventually([&] { return state_of(child) == 'T'; }));
    const auto renewed = look().lease->renew_seq;
    ASSERT_TRUE(eventually([&] { return look().lease->renew_seq > renewed + 3; })) << "renewing stopped with the child";
    running.signal(SIGCONT);
    ASSERT_TRUE(eventually([&] { return state_of(child) != 'T'; }));
    running.signal(SIGTERM);
    EXPECT_EQ(running.wait().status, 128 + SIGTERM);
}

TEST_F(RunTest, ASecondRequestToEndIsMeant) {
    auto running = start_and_await({"ignore"}, 1);
    // Two different ones, because two of a kind that come at once count as one.
    running.signal(SIGTERM);
    running.signal(SIGINT);
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
    EXPECT_EQ(look().state, LockState::free);
}

TEST_F(RunTest, AWaiterStartsWhenTheHolderEnds) {
    auto first = start_and_await({"obey"}, 1);
    auto second = start({"exit", "7"}, {"--wait", "60s"});
    ASSERT_TRUE(eventually([&] { return look().waiters == 1; }));
    first.signal(SIGTERM);
    EXPECT_EQ(second.wait().status, 7);
}

TEST_F(RunTest, TheHolderIsTheProcessThatTheCallerWaitsFor) {
    Running running = start_and_await({"obey"}, 1);
    EXPECT_THAT(look().lease->holder.text, testing::HasSubstr(":" + std::to_string(running.pid()) + ":"));
    running.signal(SIGTERM);
    EXPECT_EQ(running.wait().status, 128 + SIGTERM);
}

TEST_F(RunTest, AnInnerProcessThatWasKilledDuringTheWaitIsAFailure) {
    const auto store = held_by_bob();
    Running running = start({"ignore"}, {"--wait", "60s", "--json"});
    ASSERT_TRUE(eventually([&] { return look().waiters == 1; }));
    ASSERT_EQ(kill(inner_of(running), SIGKILL), 0);
    const auto ended = running.wait();
    EXPECT_EQ(ended.status, 125);
    EXPECT_EQ(ended.json().text("/outcome"), "failed");
    EXPECT_TRUE(roster().empty());
}

TEST_F(RunTest, KilledDuringTheWaitItLeavesTheQueue) {
    const auto store = held_by_bob();
    Running running = start({"obey"}, {"--wait", "60s"});
    ASSERT_TRUE(eventually([&] { return look().waiters == 1; }));
    const pid_t inner = inner_of(running);
    running.signal(SIGKILL);
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
    EXPECT_TRUE(eventually([&] { return !is_alive(inner); }));
    EXPECT_EQ(look().waiters, 0U);
    EXPECT_TRUE(roster().empty());
}

TEST_F(RunTest, ASignalForTheWholeJobCountsOnce) {
    // Twice would be a second request, which kills.
    Running running =
        box_.start_program({"/usr/bin/setsid", box_.program, "run", "--store", store_url(), name_.text(), "--",
                            "/bin/sh", "-c", "trap 'exit 9' TERM; : >ready; while :; do sleep .02; done"});
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(box_.work / "ready"); }));
    ASSERT_EQ(kill(-running.pid(), SIGTERM), 0);
    EXPECT_EQ(running.wait().status, 9);
}

// As `killall holdfast` does, to both.
TEST_F(RunTest, ASignalToTheInnerProcessIsNoRequestOfItsOwn) {
    Running running = start_and_await({"deaf"}, 1);
    const pid_t child = *roster().begin();
    kill(inner_of(running), SIGTERM);
    running.signal(SIGTERM);
    EXPECT_TRUE(
        eventually([&] { return std::filesystem::exists(roster_folder_ / (std::to_string(child) + ".term")); }));
    const auto renewed = look().lease ? look().lease->renew_seq : 0;
    EXPECT_TRUE(eventually([&] { return !is_alive(child) || look().lease->renew_seq > renewed + 1; }));
    EXPECT_TRUE(is_alive(child)) << "two requests would have killed it";
    kill(child, SIGKILL);
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
}

// Renewal is cut off again and again; the child must be dead before the store's expiry every time.
TEST_F(RunTest, TheChildIsAlwaysDeadBeforeTheStoreWouldLetAnotherIn) {
    const int rounds = scaled(6);
    std::int64_t least = INT64_MAX;
    for (int round = 0; round < rounds; ++round) {
        std::filesystem::remove_all(roster_folder_);
        std::filesystem::create_directory(roster_folder_);
        std::filesystem::remove_all(box_.root / "store-taken-away");
        store_folder_ = box_.root / "store";
        auto running = start({round % 2 == 0 ? "ignore" : "fork"}, {"--json"});
        await_roster(family_size(round % 2 == 0 ? "ignore" : "fork"));
        take_store_away();
        const auto ended = running.wait();
        ASSERT_EQ(ended.status, 76) << "round " << round;
        EXPECT_FALSE(anybody_alive()) << "round " << round;
        const auto lock = look();
        EXPECT_LT(last_sign_of_life(), lock.lease->expires_at) << "round " << round;
        least = std::min(least, (lock.lease->expires_at - last_sign_of_life()).count());
    }
    std::printf("renewal cut off %d times: the child was dead at least %lld ms before the lease ran out\n", rounds,
                static_cast<long long>(least));
}

TEST_F(RunTest, AStoreThatNeverAnswersAgainDoesNotKeepItFromEnding) {
    box_.program = cli_test::full_program();
    box_.environment.insert({{"LD_PRELOAD", HANGING_SHIM},
                             {"HANGS_WHEN", (box_.root / "hang").string()},
                             {"ASAN_OPTIONS", "verify_asan_link_order=0"}});
    Running running = start({"ignore"}, {"--json"});
    await_roster(1);
    box_.write(box_.root / "hang", "");
    const auto ended = running.wait();
    EXPECT_EQ(ended.status, 76);
    EXPECT_EQ(ended.json().text("/outcome"), "lost");
    EXPECT_FALSE(anybody_alive());
}

TEST_F(RunTest, OnlyALockThatIsHeldIsSkipped) {
    // Nobody listens there.
    const cli_test::Environment away{{"HOLDFAST_STORE", "redis://127.0.0.1:1/0"}};
    const auto refused = box_.run({"run", "a", "--if-held", "skip", "--", "true"}, away);
    EXPECT_EQ(refused.status, 69);
    EXPECT_THAT(refused.err, HasSubstr("E_STORE_UNAVAILABLE"));
    const auto document = box_.run({"run", "a", "--if-held", "skip", "--json", "--", "true"}, away).json();
    EXPECT_EQ(document.text("/outcome"), "not_acquired");
}

/// `holdfast run` as the first process of a pid namespace.
class RunAsInit : public RunFixture {
protected:
    void SetUp() override {
        if (!can_be_init()) GTEST_SKIP() << not_here << "no process can have a pid namespace";
    }
};

TEST_F(RunAsInit, PassesTheStatusOn) { EXPECT_EQ(box_.run_program(as_init({"exit", "42"})).status, 42); }

TEST_F(RunAsInit, ReapsWhatIsLeftToIt) { EXPECT_EQ(box_.run_program(as_init({"die", "15"})).status, 128 + SIGTERM); }

TEST_F(RunAsInit, ForwardsSignalsThatTheKernelWouldDropForIt) {
    auto running = box_.start_program(as_init({"obey"}));
    await_roster(1);
    const std::string outside = std::to_string(running.pid());
    pid_t init = 0;
    std::ifstream("/proc/" + outside + "/task/" + outside + "/children") >> init;
    ASSERT_GT(init, 0);
    kill(init, SIGTERM);
    EXPECT_EQ(running.wait().status, 128 + SIGTERM);
    EXPECT_EQ(look().state, LockState::free);
}

}  // namespace
}  // namespace holdfast::tests
