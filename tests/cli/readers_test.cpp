// Reading changes nothing: not a byte on disk, and not a live lock, whatever the reader's clock or time zone says.
#include "sandbox.hpp"

#include <gtest/gtest.h>

namespace holdfast::cli_test {
namespace {

class Readers : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override { box.environment["HOLDFAST_STORE"] = GetParam(); }
    Sandbox box;
};

const std::vector<Args>& reading() {
    static const std::vector<Args> commands{{"status"},
                                            {"status", "a"},
                                            {"status", "a", "--json"},
                                            {"ls", "--json"},
                                            {"history"},
                                            {"history", "a", "--json"},
                                            {"history", "--verify"},
                                            {"override", "list"},
                                            {"doctor"},
                                            {"init", "--print"}};
    return commands;
}

TEST_P(Readers, LeaveEveryByteOnDiskAsItIs) {
    ASSERT_EQ(box.run({"acquire", "a", "--ttl", "1h"}).status, 0);
    ASSERT_EQ(box.run({"acquire", "expired", "--ttl", "50ms"}).status, 0);
    ASSERT_TRUE(
        eventually([&] { return box.run({"status", "expired", "--json"}).json().text("/state") == "expired"; }));
    for (const Args& command : reading()) {
        const auto before = box.files();
        EXPECT_EQ(box.run(command).status, 0) << command[0];
        EXPECT_EQ(box.files(), before) << command[0];
    }
}

TEST_P(Readers, CreateNoStore) {
    const auto before = box.files();
    for (const Args& command : reading()) {
        const auto ended = box.run(command);
        EXPECT_EQ(ended.status, 0) << command[0] << ended.err;
        EXPECT_EQ(box.files(), before) << command[0];
    }
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/state"), "free");
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().number("/token"), 0);
}

TEST_P(Readers, InAnotherTimeZoneSeeTheSameLock) {
    const auto grant = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
    const auto seen = box.run({"status", "a", "--json"}, {{"TZ", "Asia/Tokyo"}}).json();
    EXPECT_EQ(seen.text("/state"), "held");
    EXPECT_EQ(seen.text("/expires_at"), grant.text("/expires_at"));
    EXPECT_EQ(box.run({"acquire", "a"}, {{"TZ", "America/Los_Angeles"}}).status, 75);
}

TEST_P(Readers, WithAClockThatRunsAheadDoNotChangeALiveLock) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a preloaded library and a sanitizer do not go together; the release build runs this";
#endif
    ASSERT_TRUE(std::filesystem::exists("/usr/bin/faketime")) << "make test installs it";
    const auto grant = box.run({"acquire", "a", "--ttl", "10m", "--json"}).json();
    const auto before = box.files();
    EXPECT_EQ(box.run_program({"/usr/bin/faketime", "-f", "+1h", full_program(), "status", "a", "--json"}).status, 0);
    EXPECT_EQ(box.files(), before);
    const auto seen = box.run({"status", "a", "--json"}).json();
    EXPECT_EQ(seen.text("/state"), "held");
    EXPECT_EQ(seen.text("/lock_id"), grant.text("/lock_id"));
    EXPECT_EQ(box.run({"renew", "a"}, {{"HOLDFAST_LEASE", grant.text("/lease")}}).status, 0);
}

INSTANTIATE_TEST_SUITE_P(Stores, Readers, testing::ValuesIn(stores()),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

}  // namespace
}  // namespace holdfast::cli_test
