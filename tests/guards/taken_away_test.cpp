// Goal: whoever takes a lock away from `run` ends its command, on every store, although its lease would last for an
// hour. Method: the program on real stores, with commands that say when they have begun.

#include "cli/sandbox.hpp"
#include "support/matchers.hpp"
#include "support/store_harness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>

namespace holdfast::tests {
namespace {

using cli_test::Args;
using cli_test::Document;
using cli_test::eventually;
using cli_test::Running;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::array all_stores{start_file, start_sqlite, start_postgres, start_mysql, start_redis, start_etcd};

class TakenAway : public testing::Test {
protected:
    void use(const StoreHarness& harness) { box_->environment["HOLDFAST_STORE"] = harness.url(); }
    /// A command under the lock `x` that has begun.
    [[nodiscard]] Running begin() {
        Running running = box_->start(
            {"run", "x", "--ttl", "1h", "--json", "--", "/bin/sh", "-c", ": >began; while :; do sleep .02; done"});
        EXPECT_TRUE(eventually([&] { return std::filesystem::exists(box_->work / "began"); }));
        return running;
    }
    [[nodiscard]] static std::string reason(Running& running) {
        const auto ended = running.wait();
        EXPECT_EQ(ended.status, 76);
        const Document told = ended.json();
        EXPECT_EQ(told.text("/outcome"), "lost");
        EXPECT_EQ(told.number("/child/signal"), SIGTERM);
        EXPECT_EQ(told.text("/error/code"), "E_LOCK_NOT_HELD");
        return told.text("/error/message");
    }

    std::optional<cli_test::Sandbox> box_{std::in_place};
};

TEST_F(TakenAway, ByUnlockEndsTheCommandAndSaysWhoAndWhy) {
    for (const auto& start : all_stores) {
        const auto harness = must(start());
        SCOPED_TRACE(harness->url());
        box_.emplace();
        use(*harness);
        Running running = begin();
        const auto unlocked = box_->run({"unlock", "x", "--yes", "--holder", "alice@ops", "-m", "wrong branch"});
        ASSERT_EQ(unlocked.status, 0) << unlocked.err;
        EXPECT_THAT(unlocked.out, HasSubstr("its command may still run until "));
        EXPECT_THAT(reason(running), AllOf(HasSubstr("taken away by alice@ops"), HasSubstr("wrong branch")));
    }
}

TEST_F(TakenAway, ByAnApprovedOverrideEndsTheCommandAndSaysForWhom) {
    for (const auto& start : all_stores) {
        const auto harness = must(start());
        SCOPED_TRACE(harness->url());
        box_.emplace();
        use(*harness);
        Running running = begin();
        ASSERT_EQ(box_->run({"override", "request", "x", "--holder", "ben", "-q"}).status, 0);
        ASSERT_EQ(box_->run({"override", "approve", "x", "--holder", "carla", "-m", "release is due"}).status, 0);
        EXPECT_THAT(reason(running), AllOf(HasSubstr("ben"), HasSubstr("carla"), HasSubstr("release is due")));
    }
}

TEST_F(TakenAway, LeavesNoBellBehind) {
    const auto harness = must(start_sqlite());
    use(*harness);
    Running running = begin();
    const std::string url = harness->url();
    const std::filesystem::path bells = url.substr(url.find(':') + 1, url.find('?') - url.find(':') - 1) + "-wake";
    const auto hangs = [&] { return std::filesystem::exists(bells) && !std::filesystem::is_empty(bells); };
    ASSERT_TRUE(eventually(hangs)) << "it hears of its loss";
    kill(running.pid(), SIGTERM);
    EXPECT_EQ(running.wait().status, 128 + SIGTERM);
    EXPECT_FALSE(hangs());
}

}  // namespace
}  // namespace holdfast::tests
