// How long a lock is usually held, and what that means for a waiter.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::cli_test {
namespace {

class Usual : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override { box.environment["HOLDFAST_STORE"] = GetParam(); }

    void hold(int times) {
        for (int i = 0; i < times; ++i) {
            const std::string lease = acquire();
            ASSERT_EQ(box.run({"release", "a"}, {{"HOLDFAST_LEASE", lease}}).status, 0);
        }
    }
    std::string acquire() { return box.run({"acquire", "a", "--ttl", "1h", "--json"}).json().text("/lease"); }
    std::int64_t waiters() { return box.run({"status", "a", "--json"}).json().number("/waiters"); }

    Sandbox box;
};

TEST_P(Usual, StatusTellsItAsSoonAsThereAreEnoughHolds) {
    hold(4);
    auto document = box.run({"status", "a", "--json"}).json();
    EXPECT_FALSE(document.contains("/usual_hold_ms"));
    EXPECT_TRUE(document.contains("/held_ms"));
    EXPECT_FALSE(document.has("/held_ms"));
    EXPECT_THAT(box.run({"status", "a"}).out, testing::Not(testing::HasSubstr("usual")));
    hold(1);
    EXPECT_THAT(box.run({"status", "a"}).out, testing::ContainsRegex("usual +usually held [0-9]+ m?s\n"));
    acquire();
    document = box.run({"status", "a", "--json"}).json();
    EXPECT_EQ(document.number("/usual_hold_ms/samples"), 5);
    EXPECT_GE(document.number("/usual_hold_ms/p95"), document.number("/usual_hold_ms/p50"));
    EXPECT_TRUE(document.has("/held_ms"));
    EXPECT_TRUE(document.has("/turn_in_ms"));
    EXPECT_THAT(box.run({"status", "a"}).out,
                testing::ContainsRegex("usual +held .*, usually .*; about your turn in "));
}

TEST_P(Usual, EveryoneWhoWaitsIsToldIt) {
    hold(5);
    const std::string first = acquire();
    auto second = box.start({"acquire", "a", "--wait", "1m", "--json"});
    ASSERT_TRUE(eventually([&] { return waiters() == 1; }));
    for (const Args& command : std::vector<Args>{{"acquire", "a", "--wait", "100ms"},
                                                 {"hold", "a", "--for", "1m", "--reason", "x", "--wait", "100ms"},
                                                 {"run", "a", "--wait", "100ms", "--", "true"}}) {
        const auto waited = box.run(command);
        EXPECT_EQ(waited.status, 75) << command.front();
        EXPECT_THAT(waited.err,
                    testing::ContainsRegex("waiting: a is held .*; held .*, usually .*; about your turn in "))
            << command.front();
    }
    for (const char* silent : {"-q", "--json"})
        EXPECT_THAT(box.run({"acquire", "a", "--wait", "1ms", silent}).err,
                    testing::Not(testing::HasSubstr("usually")));
    ASSERT_EQ(box.run({"release", "a"}, {{"HOLDFAST_LEASE", first}}).status, 0);
    EXPECT_EQ(second.wait().status, 0);
}

TEST_P(Usual, OfAnotherLockInTheWayNoTurnIsTold) {
    hold(5);
    acquire();
    const auto waited = box.run({"acquire", "b", "--unless-held", "a", "--wait", "100ms"});
    EXPECT_EQ(waited.status, 75);
    EXPECT_THAT(waited.err, testing::HasSubstr(", usually "));
    EXPECT_THAT(waited.err, testing::Not(testing::HasSubstr("your turn")));
}

INSTANTIATE_TEST_SUITE_P(Stores, Usual, testing::ValuesIn(stores()),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

}  // namespace
}  // namespace holdfast::cli_test
