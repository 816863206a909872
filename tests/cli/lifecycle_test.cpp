// The life of a lease on the command line, on every store that needs no server: which caller gets it, which is refused
// and how, and what the audit log says afterwards.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::cli_test {
namespace {

class Lifecycle : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override { box.environment["HOLDFAST_STORE"] = GetParam(); }

    Ended acquire(const std::string& name, Args more = {}) {
        Args args{"acquire", name, "--json"};
        args.insert(args.end(), more.begin(), more.end());
        return box.run(args);
    }
    std::string lease_of(const std::string& name, Args more = {}) {
        return acquire(name, std::move(more)).json().text("/lease");
    }
    std::string state_of(const std::string& name) { return box.run({"status", name, "--json"}).json().text("/state"); }
    static Environment with(const std::string& lease) { return {{"HOLDFAST_LEASE", lease}}; }

    Sandbox box;
};

TEST_P(Lifecycle, ASecondAcquireIsRefusedWithTheHolderUntilTheLeaseRunsOut) {
    const auto first = acquire("a", {"--ttl", "2s", "--operation", "work", "-m", "why", "--user", "eva"});
    ASSERT_EQ(first.status, 0) << first.err << first.out;
    const auto grant = first.json();
    EXPECT_EQ(grant.text("/state"), "held");
    EXPECT_EQ(grant.text("/operation"), "work");
    EXPECT_FALSE(grant.has("/stolen_from"));

    const auto second = acquire("a");
    EXPECT_EQ(second.status, 75);
    EXPECT_EQ(second.code(), "E_LOCK_CONFLICT");
    EXPECT_EQ(second.json().text("/error/holder/lock_id"), grant.text("/lock_id"));
    EXPECT_EQ(second.json().text("/error/holder/holder"), grant.text("/holder"));
    EXPECT_EQ(second.json().text("/error/holder/user"), "eva");
    EXPECT_GT(second.json().number("/error/retry_after_ms"), 0);

    ASSERT_TRUE(eventually([&] { return state_of("a") == "expired"; }));
    const auto third = acquire("a");
    ASSERT_EQ(third.status, 0) << third.out;
    EXPECT_EQ(third.json().text("/stolen_from/lock_id"), grant.text("/lock_id"));
    EXPECT_GT(third.json().number("/token"), grant.number("/token"));

    const auto renewed = box.run({"renew", "a", "--json"}, with(grant.text("/lease")));
    EXPECT_THAT(renewed.status, testing::AnyOf(76, 79));
    const auto released = box.run({"release", "a", "--json"}, with(grant.text("/lease")));
    EXPECT_EQ(released.status, 79);
    EXPECT_EQ(released.code(), "E_LOCK_NOT_HELD");
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/lock_id"), third.json().text("/lock_id"));

    const auto verified = box.run({"history", "a", "--verify", "--json"});
    EXPECT_EQ(verified.status, 0) << verified.out;
    EXPECT_EQ(verified.json().number("/verified"), 2);
    EXPECT_EQ(verified.json().number("/locks"), 1);
}

TEST_P(Lifecycle, ALeaseIsRenewedByBothNamesOfTheCommand) {
    const std::string lease = lease_of("a", {"--ttl", "10m"});
    for (const char* command : {"renew", "extend"}) {
        const auto renewed = box.run({command, "a", "--json"}, with(lease));
        EXPECT_EQ(renewed.status, 0) << renewed.out;
        EXPECT_FALSE(renewed.json().contains("/lease"));
    }
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().number("/renew_seq"), 2);
}

TEST_P(Lifecycle, RenewingWithoutATtlKeepsTheLengthOfTheLease) {
    const std::string lease = lease_of("a", {"--ttl", "10m"});
    const auto renewed = box.run({"renew", "a", "--json"}, with(lease));
    EXPECT_GT(renewed.json().number("/expires_in_ms"), 9 * 60'000);
    const auto shorter = box.run({"renew", "a", "--ttl", "1m", "--json"}, with(lease));
    EXPECT_LE(shorter.json().number("/expires_in_ms"), 60'000);
}

TEST_P(Lifecycle, AnExpiredLeaseIsRefusedUnlessItIsToBeRevived) {
    const std::string lease = lease_of("a", {"--ttl", "50ms"});
    ASSERT_TRUE(eventually([&] { return state_of("a") == "expired"; }));
    EXPECT_EQ(box.run({"renew", "a", "--json"}, with(lease)).code(), "E_LOCK_EXPIRED");
    EXPECT_EQ(box.run({"renew", "a", "--ttl", "1m", "--revive", "--json"}, with(lease)).json().text("/state"), "held");
}

TEST_P(Lifecycle, ReleasingFreesTheLockAndTheNextTokenIsHigher) {
    const auto first = acquire("a").json();
    const auto released = box.run({"release", "a", "--json"}, with(first.text("/lease")));
    EXPECT_EQ(released.status, 0);
    EXPECT_TRUE(released.json().yes("/released"));
    EXPECT_EQ(state_of("a"), "free");
    EXPECT_GT(acquire("a").json().number("/token"), first.number("/token"));
}

TEST_P(Lifecycle, ReleasingWhatIsNotHeldFailsUnlessIfHeldAllowsIt) {
    const std::string lease = lease_of("a");
    ASSERT_EQ(box.run({"unlock", "a", "--yes"}).status, 0);
    ASSERT_EQ(acquire("a", {"--ttl", "1h"}).status, 0);
    EXPECT_EQ(box.run({"release", "a"}, with(lease)).status, 79);
    const auto allowed = box.run({"release", "a", "--if-held", "--json"}, with(lease));
    EXPECT_EQ(allowed.status, 0);
    EXPECT_FALSE(allowed.json().yes("/released"));
    EXPECT_EQ(state_of("a"), "held");
    EXPECT_EQ(box.run({"release", "a"}, {{"HOLDFAST_LEASE", lease}, {"HOLDFAST_IF_HELD", "skip"}}).status, 0);
}

TEST_P(Lifecycle, AConflictExitsAsTheCallerChose) {
    ASSERT_EQ(acquire("a").status, 0);
    EXPECT_EQ(acquire("a", {"-E", "3"}).status, 3);
    EXPECT_EQ(acquire("a", {"--conflict-exit-code", "0"}).status, 0);
    EXPECT_EQ(acquire("a", {"--if-held", "fail"}).status, 75);
    const auto skipped = acquire("a", {"--if-held", "skip"});
    EXPECT_EQ(skipped.status, 0);
    EXPECT_EQ(skipped.code(), "E_LOCK_CONFLICT");
    const auto quiet = box.run({"acquire", "a", "--if-held", "skip", "-q"});
    EXPECT_EQ(quiet.status, 0);
    EXPECT_EQ(quiet.out + quiet.err, "");
}

TEST_P(Lifecycle, OnlyTheCurrentTokenPassesTheCheck) {
    EXPECT_EQ(box.run({"check", "a", "--token", "1", "--json"}).code(), "E_LOCK_NOT_HELD");
    const auto first = acquire("a", {"--ttl", "1h"}).json();
    const auto current = box.run({"check", "a", "--token", first.text("/token"), "--json"});
    EXPECT_EQ(current.status, 0);
    EXPECT_TRUE(current.json().yes("/current"));
    EXPECT_EQ(box.run({"check", "a"}, {{"HOLDFAST_TOKEN", first.text("/token")}}).status, 0);

    ASSERT_EQ(box.run({"release", "a"}, with(first.text("/lease"))).status, 0);
    EXPECT_EQ(box.run({"check", "a", "--token", first.text("/token")}).status, 79);
    const auto second = acquire("a", {"--ttl", "50ms"}).json();
    EXPECT_EQ(box.run({"check", "a", "--token", first.text("/token"), "--json"}).code(), "E_FENCING_MISMATCH");
    EXPECT_EQ(box.run({"check", "a", "--token", first.text("/token")}).status, 80);
    ASSERT_TRUE(eventually([&] { return state_of("a") == "expired"; }));
    EXPECT_EQ(box.run({"check", "a", "--token", second.text("/token")}).status, 76);
}

TEST_P(Lifecycle, ALockCanBeRefusedWhileAnotherIsHeld) {
    ASSERT_EQ(acquire("deploy").status, 0);
    const auto refused = acquire("migrate", {"--unless-held", "deploy"});
    EXPECT_EQ(refused.status, 75);
    EXPECT_EQ(refused.json().text("/error/holder/name"), "deploy");
    EXPECT_EQ(acquire("migrate", {"--unless-held", "other"}).status, 0);
}

TEST_P(Lifecycle, ATransferEndsTheOldLeaseAndHandsOutANewOne) {
    const auto first = acquire("a").json();
    const auto moved = box.run({"transfer", "a", "--to", "night shift", "--json"}, with(first.text("/lease")));
    ASSERT_EQ(moved.status, 0) << moved.out;
    EXPECT_EQ(moved.json().text("/holder"), "night shift");
    EXPECT_GT(moved.json().number("/token"), first.number("/token"));
    EXPECT_EQ(box.run({"renew", "a"}, with(first.text("/lease"))).status, 79);
    EXPECT_EQ(box.run({"renew", "a"}, with(moved.json().text("/lease"))).status, 0);
}

TEST_P(Lifecycle, AHoldLastsAsLongAsItSaysAndNeedsAReason) {
    EXPECT_EQ(box.run({"hold", "a", "--for", "2h", "--json"}).code(), "E_USAGE");
    const auto held = box.run({"hold", "a", "--for", "2h", "--reason", "upgrade", "--json"});
    ASSERT_EQ(held.status, 0) << held.out;
    EXPECT_GT(held.json().number("/expires_in_ms"), 119 * 60'000);
    EXPECT_EQ(held.json().text("/reason"), "upgrade");
    EXPECT_EQ(box.run({"release", "a"}, with(held.json().text("/lease"))).status, 0);
}

TEST_P(Lifecycle, ACommandInsideAHeldLockJoinsIt) {
    const auto outer = acquire("a", {"--ttl", "1h"}).json();
    const Environment inside{{"HOLDFAST_LOCK", "a"}, {"HOLDFAST_LEASE", outer.text("/lease")}};
    const auto inner = box.run({"acquire", "a", "--ttl", "1s", "--json"}, inside);
    ASSERT_EQ(inner.status, 0) << inner.out;
    EXPECT_EQ(inner.json().text("/lease"), outer.text("/lease"));
    EXPECT_EQ(inner.json().number("/token"), outer.number("/token"));
    EXPECT_TRUE(inner.json().yes("/joined"));
    // The outer holder counts on its hour.
    EXPECT_GT(inner.json().number("/expires_in_ms"), 59 * 60'000);
    EXPECT_EQ(box.run({"acquire", "b", "--json"}, inside).json().text("/joined"), "false");
    // A release here would end the lease of the command around.
    const auto said = box.run({"acquire", "a"}, inside);
    EXPECT_THAT(said.out, testing::HasSubstr("joined"));
    EXPECT_THAT(said.out, testing::Not(testing::HasSubstr("holdfast release")));

    // A lease that is not the current one joins nothing.
    const auto stale = lease_of("c");
    ASSERT_EQ(box.run({"release", "c"}, with(stale)).status, 0);
    ASSERT_EQ(acquire("c").status, 0);
    EXPECT_EQ(box.run({"acquire", "c"}, {{"HOLDFAST_LOCK", "c"}, {"HOLDFAST_LEASE", stale}}).status, 75);
    // Nor does the public half of the current one.
    const std::string forged = outer.text("/lock_id") + "." + std::string(32, '0');
    EXPECT_EQ(box.run({"acquire", "a"}, {{"HOLDFAST_LOCK", "a"}, {"HOLDFAST_LEASE", forged}}).status, 75);
}

TEST_P(Lifecycle, AShellCanEvaluateTheLeaseWhateverTheNameIs) {
    const std::string name = "it's $(touch hacked) \"a\" `b` \\";
    const std::string script =
        std::string("eval \"$('") + HOLDFAST_PROGRAM +
        "' acquire \"$1\" --format sh)\" && printf '%s|%s' \"$HOLDFAST_LOCK\" \"$HOLDFAST_TOKEN\" && '" +
        HOLDFAST_PROGRAM + "' release \"$1\"";
    const auto ended = box.run_program({"/bin/sh", "-c", script, "sh", name});
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.out, testing::StartsWith(name + "|"));
    EXPECT_FALSE(std::filesystem::exists(box.work / "hacked"));
    EXPECT_EQ(state_of(name), "free");
}

TEST_P(Lifecycle, WithQuietTheLeaseAloneIsPrinted) {
    const auto quiet = box.run({"acquire", "a", "-q"});
    ASSERT_EQ(quiet.status, 0);
    EXPECT_EQ(quiet.err, "");
    const std::string lease = quiet.out.substr(0, quiet.out.size() - 1);
    EXPECT_EQ(box.run({"release", "a"}, with(lease)).status, 0);
}

TEST_P(Lifecycle, StatusListsWhatIsHeldAndSaysFreeOfTheRest) {
    EXPECT_EQ(box.run({"status", "--json"}).json().size("/locks"), 0U);
    ASSERT_EQ(acquire("b").status, 0);
    const std::string lease = lease_of("a");
    EXPECT_EQ(box.run({"ls", "--json"}).json().size("/locks"), 2U);
    EXPECT_EQ(box.run({"status", "--json"}).json().text("/locks/0/name"), "a");
    ASSERT_EQ(box.run({"release", "a"}, with(lease)).status, 0);
    EXPECT_EQ(box.run({"status", "--json"}).json().size("/locks"), 1U);
    EXPECT_EQ(state_of("never used"), "free");
    const auto plain = box.run({"status"});
    EXPECT_THAT(plain.out, testing::StartsWith("b\theld\t"));
    EXPECT_THAT(plain.out, testing::Not(testing::HasSubstr("\x1b")));
}

TEST_P(Lifecycle, HistoryTellsTheStoryOldestFirstAndCanBeCutShort) {
    const std::string lease = lease_of("a", {"-m", "first"});
    ASSERT_EQ(box.run({"release", "a"}, with(lease)).status, 0);
    ASSERT_EQ(acquire("b").status, 0);
    const auto all = box.run({"history", "--json"}).json();
    EXPECT_EQ(all.size("/events"), 3U);
    const auto one = box.run({"history", "a", "--json"}).json();
    EXPECT_EQ(one.text("/events/0/event"), "acquired");
    EXPECT_EQ(one.text("/events/0/reason"), "first");
    EXPECT_EQ(one.text("/events/1/event"), "released");
    EXPECT_EQ(one.text("/events/1/prev_hash"), one.text("/events/0/hash"));
    EXPECT_EQ(one.number("/events/1/seq"), 2);
    const auto newest = box.run({"history", "a", "--limit", "1", "--json"}).json();
    EXPECT_EQ(newest.size("/events"), 1U);
    EXPECT_EQ(newest.text("/events/0/event"), "released");
    EXPECT_EQ(box.run({"history", "--since", "1h", "--json"}).json().size("/events"), 3U);
    EXPECT_EQ(box.run({"history", "--verify", "--json"}).json().number("/locks"), 2);
}

TEST_P(Lifecycle, NamesThatLookLikeFlagsOrPathsAreNames) {
    for (const std::string name : {"/etc/passwd", "a b", "Ünïcode/✓", "[x,y]", "%2e"}) {
        ASSERT_EQ(acquire(name).status, 0) << name;
        EXPECT_EQ(box.run({"status", name, "--json"}).json().text("/name"), name);
    }
    EXPECT_EQ(box.run({"acquire", "--json", "--", "--ttl"}).json().text("/name"), "--ttl");
    // What would stand for any letters can be meant as it is.
    ASSERT_EQ(acquire("*").status, 0);
    const auto star = box.run({"status", "\\*", "--json"}).json();
    EXPECT_EQ(star.size("/locks"), 1U);
    EXPECT_EQ(star.text("/locks/0/name"), "*");
}

INSTANTIATE_TEST_SUITE_P(Stores, Lifecycle, testing::ValuesIn(stores()),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

}  // namespace
}  // namespace holdfast::cli_test
