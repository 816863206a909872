// The policies that ship as an example, as a user meets them: copied into a holdfast.toml.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace holdfast::cli_test {
namespace {

class Policies : public testing::Test {
protected:
    Policies() {
        std::ifstream example(EXAMPLE_POLICIES);
        box.write(box.work / "holdfast.toml", std::string(std::istreambuf_iterator<char>(example), {}));
    }

    /// How long a lease lasts, and until when it may be held, both from its start and in seconds.
    std::int64_t ttl_of(const Ended& grant) { return (grant.json().number("/expires_in_ms") + 999) / 1000; }

    Sandbox box;
};

TEST_F(Policies, AnEditLockLastsHalfAnHourAndTwoHoursAtTheMost) {
    const auto grant = box.run({"acquire", "project/42/edit", "--json"});
    ASSERT_EQ(grant.status, 0) << grant.err;
    EXPECT_EQ(ttl_of(grant), 30 * 60);
    EXPECT_TRUE(grant.json().has("/max_until"));
    EXPECT_EQ(box.run({"acquire", "project/43/edit", "--ttl", "31m"}).status, 64);
    EXPECT_EQ(box.run({"acquire", "project/43/edit", "--max-hold", "3h"}).status, 64);
}

TEST_F(Policies, AnEditLockIsRefusedWhileItsProjectIsPropagatedAndNoOtherProject) {
    ASSERT_EQ(box.run({"acquire", "project/42/propagation"}).status, 0);
    const auto refused = box.run({"acquire", "project/42/edit", "--json"});
    EXPECT_EQ(refused.status, 75);
    EXPECT_EQ(refused.json().text("/error/holder/name"), "project/42/propagation");
    EXPECT_EQ(box.run({"acquire", "project/43/edit"}).status, 0);
}

TEST_F(Policies, APropagationFailsFastAndIsNotRenewed) {
    ASSERT_EQ(ttl_of(box.run({"acquire", "project/42/propagation", "--json"})), 60);
    EXPECT_EQ(box.run({"acquire", "project/42/propagation"}).status, 75);
    EXPECT_EQ(box.run({"acquire", "project/43/propagation", "--ttl", "6m"}).status, 64);
    // Without renewal the command is ended when its one ttl is over.
    EXPECT_EQ(box.run({"run", "project/44/propagation", "--ttl", "700ms", "--", "sleep", "60"}).status, 76);
}

TEST_F(Policies, TheValidationQueueIsTakenForSeconds) {
    EXPECT_EQ(ttl_of(box.run({"acquire", "validation/queue", "--json"})), 10);
    EXPECT_EQ(box.run({"acquire", "validation/other", "--ttl", "31s"}).status, 64);
}

TEST_F(Policies, ARenewalIsBoundByTheLongestTtl) {
    const auto grant = box.run({"acquire", "project/42/edit", "--json"});
    const Environment lease{{"HOLDFAST_LEASE", grant.json().text("/lease")}};
    const auto refused = box.run({"renew", "project/42/edit", "--ttl", "12h", "--json"}, lease);
    EXPECT_EQ(refused.status, 64);
    EXPECT_THAT(refused.json().text("/error/message"),
                testing::AllOf(testing::StartsWith("--ttl: "), testing::HasSubstr("project/*/edit")));
    EXPECT_EQ(
        box.run({"renew", "project/42/edit"}, {{"HOLDFAST_LEASE", lease.begin()->second}, {"HOLDFAST_TTL", "12h"}})
            .status,
        64);
    EXPECT_EQ(ttl_of(box.run({"renew", "project/42/edit", "--ttl", "20m", "--json"}, lease)), 20 * 60);
    EXPECT_EQ(ttl_of(box.run({"renew", "project/42/edit", "--json"}, lease)), 20 * 60);
}

TEST_F(Policies, ARenewalWithoutATtlIsCutToTheLongestOne) {
    box.write(box.work / "empty.toml", "");
    const auto grant = box.run({"acquire", "project/42/edit", "--ttl", "12h", "--config", "empty.toml", "--json"});
    const Environment lease{{"HOLDFAST_LEASE", grant.json().text("/lease")}};
    EXPECT_EQ(ttl_of(box.run({"renew", "project/42/edit", "--json"}, lease)), 30 * 60);
}

TEST_F(Policies, WhatIsNotRenewedIsNotRenewedByHandEither) {
    const auto grant = box.run({"acquire", "project/42/propagation", "--json"});
    const Environment lease{{"HOLDFAST_LEASE", grant.json().text("/lease")}};
    for (const Args& args :
         {Args{"renew", "project/42/propagation"}, Args{"renew", "project/42/propagation", "--revive"},
          Args{"renew", "project/42/propagation", "--ttl", "1m"}}) {
        const auto refused = box.run(args, lease);
        EXPECT_EQ(refused.status, 64) << refused.err;
        EXPECT_THAT(refused.err,
                    testing::AllOf(testing::HasSubstr("project/*/propagation"), testing::HasSubstr("renew = false")));
    }
    EXPECT_EQ(box.run({"status", "project/42/propagation", "--json"}).json().number("/renew_seq"), 0);
}

TEST_F(Policies, AnApprovedAskerIsBoundLikeEverybodyElse) {
    ASSERT_EQ(box.run({"acquire", "project/42/edit"}).status, 0);
    EXPECT_EQ(box.run({"override", "request", "project/42/edit", "--ttl", "12h", "--json"}).code(), "E_USAGE");
    const auto asked = box.run({"override", "request", "project/42/edit", "--json"});
    ASSERT_EQ(asked.status, 0) << asked.out;
    const auto approved = box.run({"override", "approve", "project/42/edit", "--json"});
    ASSERT_EQ(approved.status, 0) << approved.out;
    EXPECT_EQ(ttl_of(approved), 30 * 60) << "the policy's ttl, and not the default";
    EXPECT_TRUE(approved.json().has("/max_until")) << "two hours at the most";
}

TEST_F(Policies, AnAskerWithoutThePolicyIsBoundByThatOfTheApprover) {
    box.write(box.work / "empty.toml", "");
    ASSERT_EQ(box.run({"acquire", "project/42/edit"}).status, 0);
    ASSERT_EQ(box.run({"override", "request", "project/42/edit", "--ttl", "12h", "--config", "empty.toml"}).status, 0);
    const auto approved = box.run({"override", "approve", "project/42/edit", "--json"});
    EXPECT_EQ(ttl_of(approved), 30 * 60);
    EXPECT_TRUE(approved.json().has("/max_until"));
}

TEST_F(Policies, AnAskerThatComesToALockThatWasGivenBackIsBoundToo) {
    const auto grant = box.run({"acquire", "project/42/edit", "--json"});
    auto asker = box.start({"override", "request", "project/42/edit", "--wait", "1m", "--json"});
    ASSERT_TRUE(eventually([&] { return box.run({"status", "project/42/edit", "--json"}).json().has("/override"); }));
    ASSERT_EQ(box.run({"release", "project/42/edit"}, {{"HOLDFAST_LEASE", grant.json().text("/lease")}}).status, 0);
    const auto taken = asker.wait();
    ASSERT_EQ(taken.status, 0) << taken.out;
    EXPECT_EQ(ttl_of(taken), 30 * 60);
    EXPECT_TRUE(taken.json().has("/max_until"));
}

TEST_F(Policies, AHeirHoldsNoLongerThanTheHolderCouldHave) {
    const auto grant = box.run({"acquire", "project/42/edit", "--json"}).json();
    const auto heir =
        box.run({"transfer", "project/42/edit", "--to", "heir", "--json"}, {{"HOLDFAST_LEASE", grant.text("/lease")}});
    ASSERT_EQ(heir.status, 0) << heir.out;
    EXPECT_EQ(heir.json().text("/max_until"), grant.text("/max_until"));
}

TEST_F(Policies, AnOperatorsHoldIsExcludedLikeAnyOther) {
    ASSERT_EQ(box.run({"acquire", "project/42/propagation"}).status, 0);
    EXPECT_EQ(box.run({"hold", "project/42/edit", "--for", "12h", "-m", "upgrade"}).status, 75);
    EXPECT_EQ(box.run({"hold", "project/43/edit", "--for", "12h", "-m", "upgrade"}).status, 0);
}

TEST_F(Policies, NobodyWaitsWhereNobodyMay) {
    box.write(box.work / "holdfast.toml", "wait = \"1m\"\n[[policy]]\nmatch = \"fast/*\"\nmay_wait = false\n");
    ASSERT_EQ(box.run({"acquire", "fast/x", "--ttl", "1h"}).status, 0);
    for (const Args& command :
         {Args{"acquire", "fast/x", "--wait", "1m"}, Args{"run", "fast/x", "--wait", "1m", "--", "true"}}) {
        const auto refused = box.run(command);
        EXPECT_EQ(refused.status, 64) << command[0];
        EXPECT_THAT(refused.err, testing::AllOf(testing::StartsWith("holdfast: E_USAGE: "),
                                                testing::HasSubstr("fast/*"), testing::HasSubstr("may_wait")));
    }
    EXPECT_EQ(box.run({"acquire", "fast/x"}, {{"HOLDFAST_WAIT", "forever"}}).status, 64);
    EXPECT_EQ(box.run({"acquire", "fast/x", "-n"}).status, 75);
    EXPECT_EQ(box.run({"acquire", "fast/x"}).status, 75) << "the file's own default gives way to its policy";
}

TEST_F(Policies, OnlyALongestTtlRefusesNoCommandWithoutATtl) {
    box.write(box.work / "holdfast.toml", "[[policy]]\nmatch = \"**\"\nlongest_ttl = \"10s\"\n");
    EXPECT_EQ(box.run({"run", "x", "--", "true"}).status, 0);
    EXPECT_EQ(ttl_of(box.run({"acquire", "x", "--json"})), 10);
}

TEST_F(Policies, AMistakeInAPolicyIsRefusedWithItsLine) {
    for (const char* wrong :
         {"[[policy]]\nttl = \"1m\"\n", "[[policy]]\nmatch = \"x\"\ntll = \"1m\"\n",
          "[[policy]]\nmatch = \"x\"\nttl = \"1 minute\"\n", "policy = 3\n",
          "[[policy]]\nmatch = \"x\"\nrenew = \"sometimes\"\n", "[[policy]]\nmatch = \"x\"\nmay_wait = \"0\"\n"}) {
        box.write(box.work / "holdfast.toml", wrong);
        const auto refused = box.run({"acquire", "x", "--json"});
        EXPECT_EQ(refused.status, 78) << wrong;
        EXPECT_EQ(refused.code(), "E_CONFIG") << wrong;
        EXPECT_THAT(refused.json().text("/error/message"), testing::HasSubstr("holdfast.toml:")) << wrong;
    }
}

}  // namespace
}  // namespace holdfast::cli_test
