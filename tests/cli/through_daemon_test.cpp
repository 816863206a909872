// Goal: every command does through a daemon what it does on the store itself. Method: a daemon of the real program, on
// a SQLite store; commands that ask it, and looks at the store beside it.
#include "sandbox.hpp"
#include "support/servers/kinds.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <fstream>

namespace holdfast::cli_test {
namespace {

using testing::HasSubstr;

class ThroughDaemon : public testing::Test {
protected:
    ThroughDaemon() { box.environment["HOLDFAST_STORE"] = "http://127.0.0.1:" + std::to_string(daemon->port()); }

    Ended acquire(const std::string& name, Args more = {}) {
        more.insert(more.begin(), {"acquire", name, "--json"});
        return box.run(more);
    }
    static Environment with(const Document& grant) { return {{"HOLDFAST_LEASE", grant.text("/lease")}}; }
    std::string state_of(const std::string& name) { return box.run({"status", name, "--json"}).json().text("/state"); }

    Sandbox box;
    const std::unique_ptr<tests::Server> daemon = tests::start_daemon();
};

TEST_F(ThroughDaemon, ALeaseIsTakenRenewedCheckedTransferredAndGivenBack) {
    const auto first = acquire("a", {"--ttl", "1h", "--operation", "work", "-m", "why", "--user", "eva"});
    ASSERT_EQ(first.status, 0) << first.out << first.err;
    const Document grant = first.json();
    EXPECT_EQ(grant.text("/grade"), "A");
    EXPECT_EQ(grant.text("/operation"), "work");

    const auto second = acquire("a");
    EXPECT_EQ(second.status, 75);
    EXPECT_EQ(second.json().text("/error/holder/lock_id"), grant.text("/lock_id"));
    EXPECT_EQ(second.json().text("/error/holder/user"), "eva");
    EXPECT_GT(second.json().number("/error/retry_after_ms"), 0);

    EXPECT_EQ(box.run({"renew", "a", "--json"}, with(grant)).json().number("/renew_seq"), 1);
    const std::string token = std::to_string(grant.number("/token"));
    EXPECT_EQ(box.run({"check", "a", "--token", token}).status, 0);
    EXPECT_EQ(box.run({"check", "a", "--token", "1"}).status, 80);
    const auto moved = box.run({"transfer", "a", "--to", "bob", "--json"}, with(grant));
    ASSERT_EQ(moved.status, 0) << moved.out;
    EXPECT_EQ(box.run({"renew", "a"}, with(grant)).status, 79);
    EXPECT_EQ(box.run({"release", "a"}, with(moved.json())).status, 0);
    EXPECT_EQ(state_of("a"), "free");
    EXPECT_EQ(box.run({"history", "--verify", "--json"}).json().number("/verified"), 4);
}

TEST_F(ThroughDaemon, LocksAndEventsAreShownAsTheStoreHasThem) {
    for (const char* name : {"b/2", "b/1", "c"}) ASSERT_EQ(acquire(name, {"--ttl", "1h"}).status, 0);
    const auto table = box.run({"status", "--json"}).json();
    ASSERT_EQ(table.size("/locks"), 3U);
    EXPECT_EQ(table.text("/locks/0/name"), "b/1");
    const auto history = box.run({"history", "--json"}).json();
    ASSERT_EQ(history.size("/events"), 3U);
    EXPECT_EQ(box.run({"history", "c", "--json"}).json().text("/events/0/event"), "acquired");
    EXPECT_EQ(box.run({"prune", "--keep", "30d", "--json"}).status, 0);
    const auto doctor = box.run({"doctor", "--json"});
    EXPECT_EQ(doctor.status, 0) << doctor.out;
    EXPECT_EQ(doctor.json().text("/grade"), "A");
    EXPECT_THAT(doctor.out, HasSubstr("in front of sqlite:"));
    EXPECT_EQ(box.run({"init"}).status, 0);
}

TEST_F(ThroughDaemon, AWatchSeesWhatHappens) {
    Running watch = box.start({"watch", "w/*", "--json"});
    ASSERT_TRUE(eventually([&] {
        // Something to see, until it has seen it: only then it listens.
        EXPECT_EQ(box.run({"run", "w/1", "--", "/bin/true"}).status, 0);
        return watch.out().find("released") != std::string::npos;
    })) << watch.err();
    watch.signal(SIGINT);
    EXPECT_EQ(watch.wait().status, 130);
}

TEST_F(ThroughDaemon, AnOperatorBreaksAndAnAskerIsAnswered) {
    const Document grant = acquire("a", {"--ttl", "1h"}).json();
    const auto asked = box.run({"override", "request", "a", "-m", "urgent", "--json"});
    ASSERT_EQ(asked.status, 0) << asked.out;
    EXPECT_EQ(box.run({"override", "list", "--json"}).json().text("/overrides/0/override/reason"), "urgent");
    EXPECT_EQ(box.run({"override", "approve", "a"}, with(grant)).status, 0);
    EXPECT_EQ(box.run({"renew", "a"}, with(asked.json())).status, 0);
    EXPECT_EQ(box.run({"unlock", "a", "--yes", "--reason", "it is needed"}).status, 0);
    EXPECT_EQ(box.run({"renew", "a"}, with(asked.json())).status, 79);
    EXPECT_EQ(state_of("a"), "free");
}

TEST_F(ThroughDaemon, AWaiterIsNextWhenTheHolderGivesTheLockBack) {
    const Document grant = acquire("a", {"--ttl", "1h"}).json();
    Running waiter = box.start({"acquire", "a", "--wait", "1m", "--ttl", "1h", "--json"});
    ASSERT_TRUE(eventually([&] { return box.run({"status", "a", "--json"}).json().number("/waiters") == 1; }));
    EXPECT_EQ(box.run({"release", "a"}, with(grant)).status, 0);
    const Ended granted = waiter.wait();
    ASSERT_EQ(granted.status, 0) << granted.out;
    EXPECT_GT(granted.json().number("/token"), grant.number("/token"));
}

TEST_F(ThroughDaemon, RunKeepsItsLockWhileItsCommandWorksAndPassesItsStatusOn) {
    box.write(box.work / "child.sh",
              "echo \"$HOLDFAST_STORE\" > store\nuntil [ -e go ]; do sleep 0.01; done\nexit 7\n");
    Running run = box.start({"run", "a", "--ttl", "10s", "--", "/bin/sh", "child.sh"});
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(box.work / "store"); })) << run.err();
    EXPECT_EQ(acquire("a").status, 75);
    box.write(box.work / "go", "");
    EXPECT_EQ(run.wait().status, 7);
    EXPECT_EQ(state_of("a"), "free");
}

TEST_F(ThroughDaemon, RunEndsItsCommandWhenItsLockIsBroken) {
    box.write(box.work / "child.sh", "touch there\nexec sleep 60\n");
    Running run = box.start({"run", "a", "--ttl", "1h", "--grace", "1s", "--", "/bin/sh", "child.sh"});
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(box.work / "there"); })) << run.err();
    EXPECT_EQ(box.run({"unlock", "a", "--yes", "--reason", "it is needed"}).status, 0);
    EXPECT_EQ(run.wait().status, 76) << "it does not wait for a renewal, which is far away";
}

TEST_F(ThroughDaemon, ADaemonThatIsKilledAndStartedAgainCostsARunNothing) {
    box.write(box.work / "child.sh", "touch there\nuntil [ -e go ]; do sleep 0.01; done\n");
    Running run = box.start({"run", "a", "--ttl", "20s", "--", "/bin/sh", "child.sh"});
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(box.work / "there"); })) << run.err();
    const std::string before = box.run({"status", "a", "--json"}).json().text("/lock_id");
    daemon->kill();
    EXPECT_EQ(box.run({"status", "a", "--json"}).code(), "E_STORE_UNAVAILABLE");
    daemon->start();
    // It renews through the new one.
    ASSERT_TRUE(eventually([&] { return box.run({"status", "a", "--json"}).json().number("/renew_seq") > 0; }));
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/lock_id"), before);
    box.write(box.work / "go", "");
    EXPECT_EQ(run.wait().status, 0);
}

TEST_F(ThroughDaemon, WithoutADaemonACommandIsNotRunAndOneThatRunsIsEndedInTime) {
    box.write(box.work / "child.sh", "touch there\nexec sleep 60\n");
    Running run = box.start({"run", "a", "--ttl", "3s", "--grace", "500ms", "--", "/bin/sh", "child.sh"});
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(box.work / "there"); })) << run.err();
    daemon->kill();
    EXPECT_EQ(run.wait().status, 76);
    const auto refused = box.run({"run", "b", "--", "/bin/sh", "-c", "touch ran"});
    EXPECT_EQ(refused.status, 69) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(box.work / "ran"));
}

}  // namespace
}  // namespace holdfast::cli_test
