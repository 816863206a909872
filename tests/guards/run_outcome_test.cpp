// Goal: `holdfast run` says what became of its command, of its wait and of its lease, also when two things happen at
// once. Method: the program on a file store, with signals, holders and a store that go at the wrong moment.

#include "guards/run_fixture.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using cli_test::Ended;
using cli_test::Environment;
using testing::AllOf;
using testing::HasSubstr;

class RunOutcome : public RunFixture {
protected:
    RunOutcome() {
        box_.environment["HOLDFAST_STORE"] = "file:" + store_folder_.string();
        box_.environment["PATH"] = std::string(HOLDFAST_BIN) + ":/usr/bin:/bin";
    }
    /// `run` of a shell script under the lock.
    [[nodiscard]] Ended run_script(const std::string& script, Args flags = {}, const Environment& more = {}) {
        flags.insert(flags.begin(), {"run", name_.text()});
        flags.insert(flags.end(), {"--", "/bin/sh", "-c", script});
        return box_.run(flags, more);
    }
    [[nodiscard]] std::unique_ptr<Store> store() const { return must(open_store("file:" + store_folder_.string())); }
    Acquire taken_by_bob(const LockName& name, std::chrono::milliseconds ttl = 60s) {
        const Acquire bob = by_bob(name, ttl);
        must(store()->apply_one(bob, soon()));
        return bob;
    }
    /// A run that waits for the lock.
    [[nodiscard]] Running start_waiting(const Args& flags) {
        Running running = start({"obey"}, flags);
        EXPECT_TRUE(eventually([&] { return look().waiters == 1; }));
        return running;
    }
};

TEST_F(RunOutcome, OfACommandThatCouldNotBeRunNamesNoStatusOfAChild) {
    const auto document = box_.run({"run", "a", "--json", "--", "/no/such/command"}).json();
    EXPECT_EQ(document.text("/outcome"), "not_runnable");
    EXPECT_EQ(document.number("/exit_code"), 127);
    EXPECT_FALSE(document.has("/child/code"));
    EXPECT_FALSE(document.has("/child/signal"));
    EXPECT_THAT(document.text("/error/message"), HasSubstr("/no/such/command"));
    EXPECT_EQ(box_.run({"run", "a", "--", "/etc/passwd/x"}).status, 127) << "nothing is found below a file";
}

TEST_F(RunOutcome, OfASuccessThatCouldNotGiveItsLockBackIsSaid) {
    const std::string goes_away = "mv '" + store_folder_.string() + "' '" + store_folder_.string() + ".away'";
    const std::string comes_back = "mv '" + store_folder_.string() + ".away' '" + store_folder_.string() + "'";
    const Ended in_words = run_script(goes_away);
    EXPECT_EQ(in_words.status, 0);
    EXPECT_THAT(in_words.err, AllOf(HasSubstr("ended with status 0"), HasSubstr("the lease was not released")));
    ASSERT_EQ(box_.run_program({"/bin/sh", "-c", comes_back}).status, 0);
    const Ended document = box_.run({"run", "other", "--json", "--", "/bin/sh", "-c", goes_away});
    EXPECT_EQ(document.json().text("/outcome"), "child_exit");
    EXPECT_TRUE(document.json().has("/error"));
}

TEST_F(RunOutcome, OfASuccessThatLeftAProcessRunningIsSaid) {
    const Ended ended =
        run_script("sleep 5 >/dev/null 2>&1 & exit 0", {"--ttl", "1500ms", "--grace", "100ms", "--leave-behind"});
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.err, AllOf(HasSubstr("left running: sleep"), HasSubstr("not released")));
}

TEST_F(RunOutcome, OfAWaitThatASignalEndedIsInterruptedAlsoWhereAConflictIsSkipped) {
    taken_by_bob(name_);
    Running running = start_waiting({"--wait", "60s", "--if-held", "skip", "--json"});
    running.signal(SIGTERM);
    const Ended ended = running.wait();
    EXPECT_EQ(ended.status, 128 + SIGTERM);
    EXPECT_EQ(ended.json().text("/outcome"), "interrupted");
    EXPECT_EQ(ended.json().number("/exit_code"), 128 + SIGTERM);
}

TEST_F(RunOutcome, OfASignalThatComesTogetherWithTheGrantIsInterrupted) {
    const Acquire bob = taken_by_bob(name_);
    Running running = start_waiting({"--ttl", "30s", "--wait", "60s", "--json"});
    const pid_t inner = inner_of(running);
    kill(inner, SIGSTOP);
    ASSERT_TRUE(eventually([&] { return state_of(inner) == 'T'; }));
    must(store()->apply_one(release(bob), soon()));
    running.signal(SIGTERM);
    // The outer process has passed it on when it has taken it and sleeps again.
    ASSERT_TRUE(eventually([&] { return !running.has_pending(SIGTERM); }));
    ASSERT_TRUE(eventually([&] { return state_of(running.pid()) == 'S'; }));
    kill(inner, SIGCONT);
    const Ended ended = running.wait();
    EXPECT_EQ(ended.status, 128 + SIGTERM) << ended.out;
    EXPECT_EQ(ended.json().text("/outcome"), "interrupted");
    EXPECT_TRUE(roster().empty()) << "the command was started";
    EXPECT_EQ(look().state, LockState::free);
    EXPECT_EQ(look().waiters, 0U);
}

TEST_F(RunOutcome, OfAWaitForAStoreThatIsAwayIsInterruptedByASignal) {
    must(store()->apply_one(release(taken_by_bob(name_)), soon()));
    std::vector<std::filesystem::path> guards;
    for (const auto& file : std::filesystem::recursive_directory_iterator(store_folder_))
        if (file.path().filename() == "guard") guards.push_back(file.path());
    ASSERT_EQ(guards.size(), 1U);
    // A folder in its place: the store is there, and cannot be used now.
    std::filesystem::remove(guards.front());
    std::filesystem::create_directory(guards.front());
    Running running = start({"obey"}, {"--wait", "60s"});
    ASSERT_TRUE(eventually([&] { return running.err().contains("waiting:"); }));
    running.signal(SIGTERM);
    const Ended ended = running.wait();
    EXPECT_EQ(ended.status, 128 + SIGTERM) << ended.err;
    EXPECT_TRUE(roster().empty());
}

TEST_F(RunOutcome, OfAWaitIsAnnouncedOnceForEachHolder) {
    // Looked at several times a second, and there for longer.
    taken_by_bob(lock("freeze"), 1s);
    const Ended ended = run_script("exit 3", {"--unless-held", "freeze", "--ttl", "1500ms", "--wait", "60s"});
    EXPECT_EQ(ended.status, 3) << ended.err;
    const auto first = ended.err.find("waiting: ");
    ASSERT_NE(first, std::string::npos) << ended.err;
    EXPECT_EQ(ended.err.find("waiting: ", first + 1), std::string::npos) << ended.err;
}

TEST_F(RunOutcome, OfALockThatIsExcludedIsAConflict) {
    taken_by_bob(lock("freeze"));
    const Ended ended = run_script("touch started", {"--unless-held", "freeze", "--json"});
    EXPECT_EQ(ended.status, 75) << ended.out;
    EXPECT_EQ(ended.json().text("/error/holder/name"), "freeze");
    EXPECT_FALSE(std::filesystem::exists(box_.work / "started"));
}

TEST_F(RunOutcome, TheHolderSaysWhatItWasToldToSay) {
    const Ended ended = run_script("holdfast status deploy/web --json", {"--reason", "ticket 7", "--operation", "ship",
                                                                         "--holder", "runner-1", "--user", "eve"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.json().text("/reason"), "ticket 7");
    EXPECT_EQ(ended.json().text("/operation"), "ship");
    EXPECT_EQ(ended.json().text("/holder"), "runner-1");
    EXPECT_EQ(ended.json().text("/user"), "eve");
}

TEST_F(RunOutcome, ARenewIntervalThatIsTooLongLosesNoLease) {
    box_.write(box_.work / "holdfast.toml", "[[policy]]\nmatch = \"**\"\nrenew_interval = \"1h\"\n");
    const Ended ended = run_script("sleep 1.3; exit 5", {"--ttl", "1s"});
    EXPECT_EQ(ended.status, 5) << ended.err;
}

TEST_F(RunOutcome, WithoutALockTheCommandKeepsTheLeasesAroundIt) {
    const Ended ended = run_script(
        "holdfast run other --no-lock -- /bin/sh -c 'echo \"$HOLDFAST_LOCK\"; holdfast check deploy/web -q'");
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.out, testing::StartsWith("deploy/web\n"));
}

TEST_F(RunOutcome, ACommandInsideTwoRunsHasTheLeasesOfOneNameOnTwoStores) {
    const std::string second = "sqlite:" + (box_.root / "second.db").string();
    const Ended ended = run_script("holdfast run deploy/web -s '" + second +
                                   "' -- /bin/sh -c 'echo \"$HOLDFAST_LOCK $HOLDFAST_LOCK_2 $HOLDFAST_LOCK_3\"'");
    ASSERT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.out, "deploy/web deploy/web \n");
}

TEST_F(RunOutcome, AJoinedLeaseThatIsNearItsLongestHoldLeavesTimeToWork) {
    const auto grant = box_.run({"acquire", name_.text(), "--ttl", "60s", "--max-hold", "4s", "--json"}).json();
    const Environment inside{{"HOLDFAST_LOCK", grant.text("/name")}, {"HOLDFAST_LEASE", grant.text("/lease")}};
    // The usual grace of 5 s is longer than what is left of the lease.
    const Ended ended = run_script("exit 5", {}, inside);
    EXPECT_EQ(ended.status, 5) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("(joined)"));
}

}  // namespace
}  // namespace holdfast::tests
