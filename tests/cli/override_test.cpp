// Asking for a lock and answering.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace holdfast::cli_test {
namespace {

class OverrideFlow : public testing::Test {
protected:
    Document first_grant() {
        // Beside a lease in the environment the store is named, too.
        box.environment["HOLDFAST_STORE"] = "sqlite:locks.db";
        return box.run({"acquire", "a", "--holder", "first", "--ttl", "1h", "--json"}).json();
    }
    Sandbox box;
    Document grant = first_grant();

    /// An asker that was stopped before it could hear that it has the lock.
    Running approved_while_stopped(const std::string& ttl) {
        auto asker = box.start({"override", "request", "a", "--wait", "1m", "--ttl", ttl});
        EXPECT_TRUE(eventually([&] { return is_asked(); }));
        asker.signal(SIGSTOP);
        EXPECT_TRUE(eventually([&] { return asker.is_stopped(); }));
        EXPECT_EQ(box.run({"override", "approve", "a"}).status, 0);
        return asker;
    }
    bool is_asked() { return box.run({"status", "a", "--json"}).json().has("/override"); }
};

TEST_F(OverrideFlow, AnApprovedRequestMovesTheLockToTheAskersLease) {
    const auto asked = box.run({"override", "request", "a", "--holder", "second", "-m", "urgent", "--json"});
    ASSERT_EQ(asked.status, 0) << asked.out;
    const std::string lease = asked.json().text("/lease");
    EXPECT_EQ(box.run({"renew", "a"}, {{"HOLDFAST_LEASE", lease}}).status, 79);
    const auto list = box.run({"override", "list", "--json"}).json();
    ASSERT_EQ(list.size("/overrides"), 1U);
    EXPECT_EQ(list.text("/overrides/0/override/holder"), "second");
    EXPECT_EQ(list.text("/overrides/0/override/reason"), "urgent");

    const auto approved = box.run({"override", "approve", "a", "--json"}, {{"HOLDFAST_LEASE", grant.text("/lease")}});
    ASSERT_EQ(approved.status, 0) << approved.out;
    EXPECT_EQ(approved.json().text("/holder"), "second");
    EXPECT_GT(approved.json().number("/token"), grant.number("/token"));
    EXPECT_EQ(box.run({"renew", "a"}, {{"HOLDFAST_LEASE", lease}}).status, 0);
    EXPECT_EQ(box.run({"renew", "a"}, {{"HOLDFAST_LEASE", grant.text("/lease")}}).status, 79);
    EXPECT_EQ(box.run({"override", "list", "--json"}).json().size("/overrides"), 0U);
}

TEST_F(OverrideFlow, OnlyTheHolderOrAnOperatorAnswers) {
    ASSERT_EQ(box.run({"override", "request", "a"}).status, 0);
    const std::string stranger = "00000000-0000-4000-8000-000000000000." + std::string(32, '0');
    EXPECT_EQ(box.run({"override", "approve", "a", "--lease", stranger, "--json"}).code(), "E_DENIED");
    EXPECT_TRUE(is_asked());
    // A lease of another lock in the environment does not keep an operator from answering.
    EXPECT_EQ(box.run({"override", "deny", "a"}, {{"HOLDFAST_LEASE", stranger}}).status, 0);
    EXPECT_FALSE(is_asked());
    EXPECT_EQ(box.run({"override", "deny", "a", "--json"}).code(), "E_LOCK_NOT_HELD");
}

TEST_F(OverrideFlow, AWaitingAskerIsToldTheAnswer) {
    auto approved = box.start({"override", "request", "a", "--holder", "second", "--wait", "1m", "--json"});
    ASSERT_TRUE(eventually([&] { return is_asked(); }));
    ASSERT_EQ(box.run({"override", "approve", "a"}).status, 0);
    const auto yes = approved.wait();
    ASSERT_EQ(yes.status, 0) << yes.out;
    EXPECT_EQ(yes.json().text("/holder"), "second");
    EXPECT_EQ(box.run({"renew", "a"}, {{"HOLDFAST_LEASE", yes.json().text("/lease")}}).status, 0);

    auto denied = box.start({"override", "request", "a", "--wait", "1m", "--json"});
    ASSERT_TRUE(eventually([&] { return is_asked(); }));
    ASSERT_EQ(box.run({"override", "deny", "a"}).status, 0);
    const auto no = denied.wait();
    EXPECT_EQ(no.status, 77);
    EXPECT_EQ(no.code(), "E_DENIED");
}

TEST_F(OverrideFlow, ARequestThatNobodyAnswersEndsAndLeavesNothing) {
    const auto ended = box.run({"override", "request", "a", "--wait", "300ms", "--json"});
    EXPECT_EQ(ended.status, 75);
    EXPECT_EQ(ended.code(), "E_LOCK_CONFLICT");
    EXPECT_FALSE(is_asked());
}

TEST_F(OverrideFlow, AnAskerThatIsStoppedWithdrawsItsRequest) {
    auto asker = box.start({"override", "request", "a", "--wait", "1m"});
    ASSERT_TRUE(eventually([&] { return is_asked(); }));
    asker.signal(SIGTERM);
    EXPECT_EQ(asker.wait().status, 128 + SIGTERM);
    EXPECT_FALSE(is_asked());
}

TEST_F(OverrideFlow, ADeniedAskerIsToldByWhomAndWhy) {
    auto asker = box.start({"override", "request", "a", "--wait", "1m"});
    ASSERT_TRUE(eventually([&] { return is_asked(); }));
    ASSERT_EQ(box.run({"override", "deny", "a", "--holder", "carla", "-m", "not before noon"}).status, 0);
    const auto no = asker.wait();
    EXPECT_EQ(no.status, 77);
    EXPECT_EQ(no.out, "");
    EXPECT_THAT(no.err, testing::HasSubstr("holdfast: E_DENIED: carla denied the request for a: not before noon\n"));
    EXPECT_THAT(no.err, testing::HasSubstr("  first goes on; "));
    EXPECT_THAT(no.err, testing::Not(testing::HasSubstr("doctor")));
}

TEST_F(OverrideFlow, ASecondAskerIsToldWhereToLook) {
    ASSERT_EQ(box.run({"override", "request", "a"}).status, 0);
    const auto second = box.run({"override", "request", "a"});
    EXPECT_EQ(second.status, 77);
    EXPECT_THAT(second.err, testing::HasSubstr("holdfast override list"));
}

// A lease that nobody takes must not keep the lock from everybody else.
TEST_F(OverrideFlow, AnAskerThatWasStoppedWhenItWasApprovedAndThenEndedGivesTheLockBack) {
    auto asker = approved_while_stopped("1h");
    asker.signal(SIGTERM);
    asker.signal(SIGCONT);
    EXPECT_EQ(asker.wait().status, 128 + SIGTERM);
    EXPECT_EQ(box.run({"acquire", "a"}).status, 0);
}

TEST_F(OverrideFlow, AnAskerThatWasKilledWhenItWasApprovedHoldsTheLockForOneTtl) {
    auto asker = approved_while_stopped("300ms");
    asker.signal(SIGKILL);
    EXPECT_EQ(asker.wait().status, 128 + SIGKILL);
    EXPECT_EQ(box.run({"acquire", "a", "--wait", "30s"}).status, 0);
}

TEST_F(OverrideFlow, AFreeLockNeedsNoRequest) {
    EXPECT_EQ(box.run({"override", "request", "free", "--json"}).code(), "E_LOCK_NOT_HELD");
}

}  // namespace
}  // namespace holdfast::cli_test
