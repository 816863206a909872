// Goal: the last line and the document of `holdfast run` say what happened, its limits are those that are documented,
// and each lock has the terms of its own policy. Method: the program on a file store, with children that end at once.

#include "guards/run_fixture.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using cli_test::Document;
using cli_test::Ended;
using testing::HasSubstr;
using testing::Not;

class RunReport : public RunFixture {
protected:
    RunReport() { box_.environment["HOLDFAST_STORE"] = "file:" + store_folder_.string(); }

    [[nodiscard]] Ended run_script(const std::string& script, Args flags = {}) {
        flags.insert(flags.begin(), {"run", name_.text()});
        flags.insert(flags.end(), {"--", "/bin/sh", "-c", script});
        return box_.run(flags);
    }
    Acquire taken_by(const char* who, const std::string& name) {
        const Acquire other = by(who, lock(name), 1h);
        must(must(open_store("file:" + store_folder_.string()))->apply_one(other, soon()));
        return other;
    }
    LockStatus look_at(const std::string& name) {
        return must(must(open_store("file:" + store_folder_.string()))->inspect(lock(name), soon()));
    }
    void policies(const std::string& text) const { box_.write(box_.work / "holdfast.toml", text); }
    static std::size_t count(const std::string& text, const std::string& part) {
        std::size_t found = 0;
        for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
        return found;
    }
};

TEST_F(RunReport, NamesTheSignalThatEndedTheCommand) {
    const Ended words = run_script("kill -USR1 $$");
    EXPECT_EQ(words.status, 128 + SIGUSR1);
    EXPECT_THAT(words.err, HasSubstr("deploy/web: ended by signal 10\n"));
    const Document document = run_script("kill -USR1 $$", {"--json"}).json();
    EXPECT_EQ(document.text("/outcome"), "child_exit");
    EXPECT_EQ(document.number("/exit_code"), 128 + SIGUSR1);
    EXPECT_EQ(document.number("/child/signal"), SIGUSR1);
    EXPECT_FALSE(document.has("/child/code"));
}

TEST_F(RunReport, OfASuccessHasTheLeaseAndNoTrouble) {
    const Document document = run_script("true", {"--json"}).json();
    EXPECT_EQ(document.number("/exit_code"), 0);
    EXPECT_EQ(document.number("/child/code"), 0);
    EXPECT_EQ(document.size("/left_over"), 0U);
    for (const char* field : {"/margin_ms", "/error"}) {
        EXPECT_TRUE(document.contains(field)) << field;
        EXPECT_FALSE(document.has(field)) << field;
    }
    EXPECT_EQ(document.size("/locks"), 1U);
    EXPECT_EQ(document.number("/locks/0/token"), static_cast<std::int64_t>(look().token.value));
    EXPECT_FALSE(document.yes("/locks/0/joined"));
}

TEST_F(RunReport, NamesWhatIsLeftRunning) {
    const Ended ended = start({"background"}, {"--json", "--grace", "100ms", "--leave-behind"}).wait();
    await_roster(1);
    EXPECT_EQ(ended.json().number("/left_over/0/pid"), *roster().begin());
    EXPECT_EQ(ended.json().text("/left_over/0/name"), "subject");
    for (const pid_t pid : roster()) kill(pid, SIGKILL);
}

TEST_F(RunReport, SaysWhyACommandWasNotStarted) {
    const Ended missing = box_.run({"run", "a", "--", "/no/such/command"});
    EXPECT_THAT(missing.err, HasSubstr("a: the command was not started: cannot run /no/such/command: No such file"));
}

TEST_F(RunReport, OfALossSaysThatTheCommandWasStopped) {
    const Ended ended = start({"obey"}, {"--max-hold", "600ms"}).wait();
    EXPECT_EQ(ended.status, 76);
    EXPECT_THAT(ended.err, HasSubstr("deploy/web: the lease was lost and the command was stopped: "));
}

TEST_F(RunReport, OfAWaitThatASignalEndedSaysSo) {
    taken_by("bob", name_.text());
    Running running = start({"obey"}, {"--wait", "60s"});
    ASSERT_TRUE(eventually([&] { return look().waiters == 1; }));
    running.signal(SIGUSR1);
    running.signal(SIGWINCH);
    running.signal(SIGINT);
    const Ended ended = running.wait();
    EXPECT_EQ(ended.status, 128 + SIGINT);
    EXPECT_THAT(ended.err, HasSubstr("stopped by signal 2 while waiting; the command was not started"));
}

TEST_F(RunReport, OfARefusalDoesNotSpeakOfAWaitThatNobodyAskedFor) {
    taken_by("bob", name_.text());
    const Ended ended = run_script("touch started");
    EXPECT_EQ(ended.status, 75);
    EXPECT_THAT(ended.err, Not(HasSubstr("waiting:")));
    EXPECT_THAT(ended.err, HasSubstr("bob"));
}

TEST_F(RunReport, EachHolderThatIsWaitedForIsNamedOnce) {
    const Acquire bob = taken_by("bob", "freeze");
    Running running = start({"exit", "3"}, {"--unless-held", "freeze", "--wait", "60s"});
    ASSERT_TRUE(eventually([&] { return running.err().contains("bob"); }));
    must(must(open_store("file:" + store_folder_.string()))
             ->apply_one(Transfer{lock("freeze"), bob.as, {"carol", ""}, Credentials::random(), ""}, soon()));
    ASSERT_TRUE(eventually([&] { return running.err().contains("carol"); })) << running.err();
    must(must(open_store("file:" + store_folder_.string()))
             ->apply_one(Break{lock("freeze"), look_at("freeze").lease->lock_id, "operator", ""}, soon()));
    const Ended ended = running.wait();
    EXPECT_EQ(ended.status, 3);
    EXPECT_EQ(count(ended.err, "waiting: "), 2U) << ended.err;
}

TEST_F(RunReport, TheSameLockCannotBeAskedForTwice) {
    const Ended ended = run_script("touch started", {"--and", "b", "--and", "b"});
    EXPECT_EQ(ended.status, 64);
    EXPECT_THAT(ended.err, HasSubstr("twice: b"));
    EXPECT_EQ(run_script("touch started", {"--and", name_.text()}).status, 64);
    EXPECT_FALSE(std::filesystem::exists(box_.work / "started"));
}

TEST_F(RunReport, TheGraceIsAtMostHalfOfTheLease) {
    EXPECT_EQ(run_script("true", {"--ttl", "4s", "--grace", "2s"}).status, 0);
    const Ended refused = run_script("true", {"--ttl", "4s", "--grace", "2001ms"});
    EXPECT_EQ(refused.status, 64);
    EXPECT_THAT(refused.err, HasSubstr("more than half of the 4 s that a lease lasts"));
    EXPECT_EQ(run_script("true", {"--ttl", "1h", "--max-hold", "4s", "--grace", "2001ms"}).status, 64);
}

TEST_F(RunReport, TheGraceIsAThirdOfAShortLeaseUnlessItIsGiven) {
    // The command obeys at once, so that at most the grace and its third for SIGKILL are left; less on a busy machine.
    const Ended ended = start({"obey"}, {"--ttl", "1500ms", "--max-hold", "1500ms", "--json"}).wait();
    EXPECT_EQ(ended.status, 76);
    EXPECT_LE(ended.json().number("/margin_ms"), 670);
    EXPECT_GT(ended.json().number("/margin_ms"), 50);
}

TEST_F(RunReport, EveryLockCountsForTheGrace) {
    policies("[[policy]]\nmatch = \"short/*\"\nttl = \"4s\"\n");
    EXPECT_EQ(run_script("true", {"--grace", "3s"}).status, 0);
    EXPECT_EQ(run_script("true", {"--grace", "3s", "--and", "short/x"}).status, 64);
    EXPECT_EQ(run_script("exit 3", {"--and", "short/x"}).status, 3) << "the usual grace is shortened";
}

TEST_F(RunReport, EveryLockHasTheTermsOfItsPolicy) {
    policies(
        "[[policy]]\nmatch = \"one/*\"\nttl = \"20s\"\nunless_held = [\"frozen/*\"]\n"
        "[[policy]]\nmatch = \"two/*\"\nttl = \"40s\"\n");
    taken_by("bob", "frozen/b");
    Running running = box_.start({"run", "two/b", "--and", "one/a", "--", SUBJECT, roster_folder_.string(), "obey"});
    await_roster(1);
    EXPECT_EQ(look_at("one/a").lease->ttl, 20s);
    EXPECT_EQ(look_at("two/b").lease->ttl, 40s);
    running.signal(SIGTERM);
    EXPECT_EQ(running.wait().status, 128 + SIGTERM);
    EXPECT_EQ(box_.run({"run", "two/b", "--and", "one/b", "--", "true"}).status, 75) << "one/b is excluded by frozen/b";
}

TEST_F(RunReport, AWaitThatThePolicyOfTheSecondLockWantsHearsAStopSignal) {
    policies("[[policy]]\nmatch = \"queue/*\"\nwait = \"1h\"\n");
    taken_by("bob", "queue/x");
    Running running = start({"obey"}, {"--and", "queue/x"});
    ASSERT_TRUE(eventually([&] { return look_at("queue/x").waiters == 1; }));
    ASSERT_TRUE(eventually([&] { return running.err().contains("waiting: "); }));
    EXPECT_EQ(look().state, LockState::held) << "deploy/web sorts before and is held meanwhile";
    running.signal(SIGTERM);
    EXPECT_EQ(running.wait().status, 128 + SIGTERM);
    EXPECT_EQ(look().state, LockState::free);
    EXPECT_EQ(look_at("queue/x").waiters, 0U);
}

TEST_F(RunReport, TheRenewIntervalOfThePolicyCountsWhereItIsShorter) {
    policies("[[policy]]\nmatch = \"deploy/*\"\nrenew_interval = \"50ms\"\n");
    Running running = start({"obey"}, {"--ttl", "1h"});
    EXPECT_TRUE(eventually([&] { return look().state == LockState::held && look().lease->renew_seq > 2; }));
    running.signal(SIGTERM);
    EXPECT_EQ(running.wait().status, 128 + SIGTERM);
}

TEST_F(RunReport, WithoutALockNamesNone) {
    const Ended ended = run_script("exit 4", {"--no-lock", "--json"});
    EXPECT_EQ(ended.status, 4);
    EXPECT_EQ(ended.json().text("/outcome"), "child_exit");
    EXPECT_EQ(ended.json().size("/locks"), 0U);
    EXPECT_FALSE(std::filesystem::exists(store_folder_)) << "the store was touched";
}

}  // namespace
}  // namespace holdfast::tests
