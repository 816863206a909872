// Goal: a command inside a held lock that asks for the same lock joins it: it proves the lease, keeps it alive, ends
// its own command before the lease ends, and gives nothing back. Method: leases of `acquire` and of an outer `run`
// on a file store, and the awkward child.

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
using cli_test::Environment;
using testing::HasSubstr;
using testing::Not;

class JoinTest : public RunFixture {
protected:
    JoinTest() {
        box_.environment["HOLDFAST_STORE"] = "file:" + store_folder_.string();
        box_.environment["PATH"] = std::string(HOLDFAST_BIN) + ":/usr/bin:/bin";
    }

    Document acquire(const std::string& name, Args more = {}) {
        more.insert(more.begin(), {"acquire", name, "--json"});
        const Ended ended = box_.run(more);
        EXPECT_EQ(ended.status, 0) << ended.out;
        return ended.json();
    }
    /// As `eval "$(holdfast acquire … --format sh)"` leaves it.
    static Environment inside(const Document& grant) {
        return {{"HOLDFAST_LOCK", grant.text("/name")},
                {"HOLDFAST_LEASE", grant.text("/lease")},
                {"HOLDFAST_TOKEN", grant.text("/token")}};
    }
    Ended run(Args args, const Environment& environment = {}) {
        args.insert(args.begin(), "run");
        return box_.run(args, environment);
    }
    /// The awkward child in a `run` that joins `grant`.
    Running start_inside(const Document& grant, const Args& how, const Args& flags = {}) {
        return box_.start(command(how, flags), inside(grant));
    }
    Document status(const std::string& name) { return box_.run({"status", name, "--json"}).json(); }
    std::string state(const std::string& name) { return status(name).text("/state"); }
    /// Somebody else's lease, and how it is given back.
    Acquire taken_by_bob(const std::string& name) {
        const Acquire by = by_bob(lock(name), 60s);
        must(must(open_store("file:" + store_folder_.string()))->apply_one(by, soon()));
        return by;
    }
    void give_back(const Acquire& lease) {
        must(must(open_store("file:" + store_folder_.string()))->apply_one(release(lease), soon()));
    }
};

TEST_F(JoinTest, JoinerKeepsTheLeaseAliveAndDoesNotReleaseIt) {
    const auto grant = acquire("deploy/web", {"--ttl", "1500ms"});
    auto running = start_inside(grant, {"obey"}, {"--json", "--ttl", "1h"});
    await_roster(1);
    ASSERT_TRUE(eventually([&] { return look().lease->renew_seq > 3; })) << "nobody renews";
    EXPECT_EQ(look().lease->ttl, 1500ms) << "renewed with another ttl than the lease's own";
    running.signal(SIGTERM);
    const Ended ended = running.wait();
    EXPECT_EQ(ended.status, 128 + SIGTERM) << ended.err;
    EXPECT_TRUE(ended.json().yes("/locks/0/joined"));
    EXPECT_EQ(ended.json().text("/locks/0/lock_id"), grant.text("/lock_id"));
    EXPECT_EQ(look().state, LockState::held);
    EXPECT_EQ(look().lease->lock_id.text(), grant.text("/lock_id"));
}

TEST_F(JoinTest, JoinerSaysSoInWords) {
    const Ended ended = run({"deploy/web", "--", "sh", "-c", "exit 3"}, inside(acquire("deploy/web")));
    EXPECT_EQ(ended.status, 3);
    EXPECT_THAT(ended.err, HasSubstr("deploy/web (joined): ended with status 3"));
}

TEST_F(JoinTest, JoinerOfOneLockOfTwoSaysWhich) {
    const Ended ended = run({"z", "--and", "deploy/web", "--", "sh", "-c", "exit 3"}, inside(acquire("deploy/web")));
    EXPECT_EQ(ended.status, 3);
    EXPECT_THAT(ended.err, HasSubstr("z (joined deploy/web): ended with status 3"));
}

TEST_F(JoinTest, TheGraceFitsIntoEveryLeaseJoinedOrTaken) {
    const auto long_one = acquire("deploy/web", {"--ttl", "1h"});
    const Ended taken = run({"deploy/web", "--and", "z", "--ttl", "2s", "--", "sh", "-c", "exit 3"}, inside(long_one));
    EXPECT_EQ(taken.status, 3) << "the lease that was taken is shorter than the usual grace" << taken.err;
    const auto short_one = acquire("short", {"--ttl", "4s"});
    EXPECT_EQ(run({"short", "--grace", "1900ms", "--ttl", "1h", "--", "true"}, inside(short_one)).status, 0);
    const Ended refused =
        run({"short", "--grace", "2100ms", "--ttl", "1h", "--", "touch", "started"}, inside(short_one));
    EXPECT_EQ(refused.status, 64) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("more than half"));
    EXPECT_FALSE(std::filesystem::exists(box_.work / "started"));
}

TEST_F(JoinTest, PolicyOfTheLockThatIsJoinedSecondCounts) {
    box_.write(box_.work / "holdfast.toml", "[[policy]]\nmatch = \"guarded/*\"\nunless_held = [\"freeze\"]\n");
    const auto grant = acquire("guarded/x");
    taken_by_bob("freeze");
    EXPECT_EQ(run({"a", "--", "true"}, inside(grant)).status, 0);
    const Ended ended = run({"a", "--and", "guarded/x", "--json", "--", "true"}, inside(grant));
    EXPECT_EQ(ended.status, 75);
    EXPECT_EQ(ended.json().text("/error/holder/name"), "freeze");
}

TEST_F(JoinTest, LeaseThatIsNotCurrentIsNotPassedOn) {
    const auto grant = acquire("deploy/web", {"--ttl", "50ms"});
    ASSERT_TRUE(eventually([&] { return look().state == LockState::expired; }));
    const Ended ended =
        run({"deploy/web", "--", "sh", "-c", "echo \"$HOLDFAST_LOCK $HOLDFAST_LOCK_2\""}, inside(grant));
    EXPECT_EQ(ended.out, "deploy/web \n") << ended.err;
}

TEST_F(JoinTest, CommandOfAJoinerIsDeadBeforeTheLeaseEnds) {
    auto running = start_inside(acquire("deploy/web", {"--ttl", "1500ms"}), {"ignore"}, {"--json"});
    await_roster(1);
    take_store_away();
    const Ended ended = running.wait();
    EXPECT_EQ(ended.status, 76) << ended.out;
    EXPECT_EQ(ended.json().text("/outcome"), "lost");
    EXPECT_FALSE(anybody_alive());
    EXPECT_LT(last_sign_of_life(), look().lease->expires_at);
}

TEST_F(JoinTest, ReleaseOfTheOuterLeaseEndsTheCommand) {
    const auto grant = acquire("deploy/web", {"--ttl", "900ms"});
    auto running = start_inside(grant, {"obey"}, {"--json"});
    await_roster(1);
    ASSERT_EQ(box_.run({"release", "deploy/web"}, inside(grant)).status, 0);
    EXPECT_EQ(running.wait().json().text("/outcome"), "lost");
    EXPECT_FALSE(anybody_alive());
}

TEST_F(JoinTest, LongestHoldOfTheLeaseEndsTheCommand) {
    auto running = start_inside(acquire("deploy/web", {"--ttl", "500ms", "--max-hold", "1s"}), {"obey"}, {"--json"});
    EXPECT_EQ(running.wait().json().text("/outcome"), "lost");
    EXPECT_FALSE(anybody_alive());
}

TEST_F(JoinTest, WhereThePolicyForbidsRenewalJoiningMakesNoLeaseLonger) {
    box_.write(box_.work / "holdfast.toml", "[[policy]]\nmatch = \"deploy/*\"\nttl = \"900ms\"\nrenew = false\n");
    auto running = box_.start({"run", "deploy/web", "--json", "--", SUBJECT, roster_folder_.string(), "obey"},
                              inside(acquire("deploy/web")));
    const Ended ended = running.wait();
    EXPECT_EQ(ended.status, 76) << ended.out;
    EXPECT_FALSE(anybody_alive());
    EXPECT_EQ(look().lease->renew_seq, 1U) << "renewed for more than the proof";
    EXPECT_LT(look().lease->ttl, 900ms) << "the proof made it last longer";
}

TEST_F(JoinTest, MadeUpKeyJoinsNothing) {
    const auto grant = acquire("deploy/web");
    Environment forged = inside(grant);
    forged["HOLDFAST_LEASE"] = grant.text("/lock_id") + "." + std::string(32, '0');
    const Ended ended = run({"deploy/web", "--", "touch", "started"}, forged);
    EXPECT_EQ(ended.status, 75) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("is not current and is ignored"));
    EXPECT_FALSE(std::filesystem::exists(box_.work / "started"));
    EXPECT_EQ(look().lease->renew_seq, 0U);
}

TEST_F(JoinTest, CurrentLeaseIsJoinedAlsoBehindOneOfTheSameNameThatIsNot) {
    const auto grant = acquire("deploy/web");
    Environment both = inside(grant);
    for (const char* name : {"HOLDFAST_LOCK", "HOLDFAST_LEASE", "HOLDFAST_TOKEN"})
        both[std::string(name) + "_2"] = both.at(name);
    both["HOLDFAST_LEASE"] = grant.text("/lock_id") + "." + std::string(32, '0');
    const Ended ended = run({"deploy/web", "--json", "--", "true"}, both);
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_EQ(ended.json().text("/locks/0/joined"), "true");
    EXPECT_EQ(state("deploy/web"), "held") << "it belongs to the command around";
}

TEST_F(JoinTest, LeaseThatRanOutAndThatNobodyTookIsNotJoined) {
    const auto grant = acquire("deploy/web", {"--ttl", "50ms"});
    ASSERT_TRUE(eventually([&] { return look().state == LockState::expired; }));
    const Ended ended = run({"deploy/web", "--json", "--", "sh", "-c", "holdfast check deploy/web >&2"}, inside(grant));
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("is not current and is ignored"));
    EXPECT_EQ(ended.json().text("/locks/0/joined"), "false");
    EXPECT_GT(ended.json().number("/locks/0/token"), grant.number("/token"));
    EXPECT_EQ(look().state, LockState::free) << "what was taken is given back";
}

TEST_F(JoinTest, LeaseThatSomebodyTookOverIsNotJoined) {
    const auto grant = acquire("deploy/web", {"--ttl", "50ms"});
    ASSERT_TRUE(eventually([&] { return look().state == LockState::expired; }));
    taken_by_bob("deploy/web");
    EXPECT_EQ(run({"deploy/web", "--", "true"}, inside(grant)).status, 75);
}

TEST_F(JoinTest, LocksThatExcludeItCountWhenItIsJoined) {
    const auto grant = acquire("deploy/web");
    taken_by_bob("freeze");
    const Ended ended = run({"deploy/web", "--unless-held", "freeze", "--json", "--", "true"}, inside(grant));
    EXPECT_EQ(ended.status, 75);
    EXPECT_EQ(ended.json().text("/error/code"), "E_LOCK_CONFLICT");
    EXPECT_EQ(ended.json().text("/error/holder/name"), "freeze");
    const Ended taken = box_.run({"acquire", "deploy/web", "--unless-held", "freeze", "--json"}, inside(grant));
    EXPECT_EQ(taken.code(), "E_LOCK_CONFLICT");
    EXPECT_EQ(run({"deploy/web", "--unless-held", "other", "--", "true"}, inside(grant)).status, 0);
    EXPECT_EQ(look().state, LockState::held);
}

TEST_F(JoinTest, LocksAreJoinedInAnyOrderOfTheFlagsAndTheRestIsTaken) {
    const auto grant = acquire("m");
    for (const Args& names : {Args{"m", "--and", "z"}, Args{"z", "--and", "m"}, Args{"a", "--and", "m"}}) {
        Args args = names;
        args.insert(args.end(), {"--json", "--", "true"});
        const Ended ended = run(args, inside(grant));
        ASSERT_EQ(ended.status, 0) << ended.out;
        const bool first = names.front() == "m";
        EXPECT_EQ(ended.json().yes("/locks/0/joined"), first);
        EXPECT_EQ(ended.json().yes("/locks/1/joined"), !first);
        EXPECT_EQ(state("m"), "held");
        EXPECT_EQ(state(first ? names.back() : names.front()), "free");
    }
}

TEST_F(JoinTest, WhatSortsBeforeAJoinedLockIsNotWaitedFor) {
    const auto grant = acquire("m");
    taken_by_bob("a");
    const Ended ended = run({"m", "--and", "a", "--wait", "20s", "--", "true"}, inside(grant));
    EXPECT_EQ(ended.status, 75);
    EXPECT_THAT(ended.err, HasSubstr("not waited for, because m is held already"));
}

TEST_F(JoinTest, WhatSortsBehindAJoinedLockIsWaitedFor) {
    const auto grant = acquire("m");
    const Acquire other = taken_by_bob("z");
    auto running = box_.start({"run", "z", "--and", "m", "--wait", "60s", "--", "true"}, inside(grant));
    ASSERT_TRUE(eventually([&] { return status("z").number("/waiters") == 1; }));
    give_back(other);
    EXPECT_EQ(running.wait().status, 0);
}

TEST_F(JoinTest, WhenTheOuterRunIsKilledTheInnerCommandDoesNotOutliveTheLease) {
    const Args inner = command({"ignore"});
    Args outer{"run", "--ttl", "1500ms", "deploy/web", "--", "holdfast"};
    outer.insert(outer.end(), inner.begin(), inner.end());
    auto running = box_.start(outer);
    await_roster(1);
    running.signal(SIGKILL);
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
    expect_that_nobody_outlived_the_lease();
}

TEST_F(JoinTest, WhenAJoinerIsKilledOnlyItsOwnCommandEnds) {
    box_.write(box_.work / "outer.sh", "holdfast run deploy/web -- " + std::string(SUBJECT) + " " +
                                           roster_folder_.string() +
                                           " ignore &\n"
                                           "echo $! > inner.tmp; mv inner.tmp inner\n"
                                           "wait $!\necho $? > status\nuntil [ -e go ]; do sleep 0.02; done\n");
    auto running = box_.start({"run", "--ttl", "1500ms", "deploy/web", "--", "/bin/sh", "outer.sh"});
    await_roster(1);
    pid_t inner = 0;
    ASSERT_TRUE(eventually([&] { return static_cast<bool>(std::ifstream(box_.work / "inner") >> inner); }));
    kill(inner, SIGKILL);
    ASSERT_TRUE(eventually([&] { return !anybody_alive(); })) << "the joiner's command goes on without it";
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(box_.work / "status"); }));
    box_.write(box_.work / "go", "");
    EXPECT_EQ(running.wait().status, 0) << "the outer command was ended, too";
}

TEST_F(JoinTest, OfSeveralLocksAChildInASessionOfItsOwnIsEndedWithTheOuterProcess) {
    auto running = start({"daemon"}, {"--and", "a/first"});
    await_roster(family_size("daemon"));
    running.signal(SIGKILL);
    EXPECT_EQ(running.wait().status, 128 + SIGKILL);
    expect_that_nobody_outlived_the_lease();
}

}  // namespace
}  // namespace holdfast::tests
