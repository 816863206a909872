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

TEST_F(Policies, AMistakeInAPolicyIsRefusedWithItsLine) {
    for (const char* wrong : {"[[policy]]\nttl = \"1m\"\n", "[[policy]]\nmatch = \"x\"\ntll = \"1m\"\n",
                              "[[policy]]\nmatch = \"x\"\nttl = \"1 minute\"\n", "policy = 3\n",
                              "[[policy]]\nmatch = \"x\"\nrenew = \"sometimes\"\n"}) {
        box.write(box.work / "holdfast.toml", wrong);
        const auto refused = box.run({"acquire", "x", "--json"});
        EXPECT_EQ(refused.status, 78) << wrong;
        EXPECT_EQ(refused.code(), "E_CONFIG") << wrong;
        EXPECT_THAT(refused.json().text("/error/message"), testing::HasSubstr("holdfast.toml:")) << wrong;
    }
}

}  // namespace
}  // namespace holdfast::cli_test
