// Taking a lock away: never without being asked twice, never from anybody but the one that was shown.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::cli_test {
namespace {

class Unlock : public testing::Test {
protected:
    Sandbox box;
    Document grant = box.run({"acquire", "a", "--holder", "victim", "--ttl", "1h", "--json"}).json();

    std::string holder() { return box.run({"status", "a", "--json"}).json().text("/lock_id"); }
};

TEST_F(Unlock, NobodyIsBrokenWithoutAYesWhereNobodyCanBeAsked) {
    const auto refused = box.run({"unlock", "a", "--json"});
    EXPECT_EQ(refused.status, 64);
    EXPECT_EQ(refused.code(), "E_USAGE");
    EXPECT_THAT(refused.err, testing::HasSubstr("victim"));
    EXPECT_EQ(holder(), grant.text("/lock_id"));
}

TEST_F(Unlock, AllThreeNamesBreakWhatTheyShow) {
    for (const char* command : {"unlock", "force-unlock", "break"}) {
        const auto broken = box.run({command, "a", "--yes", "--reason", "gone", "--json"});
        ASSERT_EQ(broken.status, 0) << broken.out;
        EXPECT_EQ(broken.json().text("/released/holder"), "victim");
        EXPECT_THAT(broken.err, testing::HasSubstr("victim"));
        ASSERT_EQ(box.run({"acquire", "a", "--holder", "victim"}).status, 0);
    }
    const auto events = box.run({"history", "a", "--json"}).json();
    EXPECT_EQ(events.text("/events/1/event"), "broken");
    EXPECT_EQ(events.text("/events/1/holder"), "victim");
    EXPECT_EQ(events.text("/events/1/reason"), "gone");
    EXPECT_TRUE(events.has("/events/1/actor"));
    EXPECT_GT(events.number("/events/2/token"), events.number("/events/0/token"));
}

TEST_F(Unlock, AnotherLeaseThanTheExpectedOneIsLeftAlone) {
    const auto refused =
        box.run({"unlock", "a", "--yes", "--expect", "00000000-0000-4000-8000-000000000000", "--json"});
    EXPECT_EQ(refused.status, 75);
    EXPECT_EQ(refused.json().text("/error/holder/lock_id"), grant.text("/lock_id"));
    EXPECT_EQ(holder(), grant.text("/lock_id"));
    EXPECT_EQ(box.run({"unlock", "a", "--yes", "--expect", grant.text("/lock_id")}).status, 0);
}

TEST_F(Unlock, AFreeLockCannotBeBroken) {
    EXPECT_EQ(box.run({"unlock", "other", "--yes", "--json"}).code(), "E_LOCK_NOT_HELD");
    EXPECT_EQ(box.run({"unlock", "other", "--yes"}).status, 79);
}

// `script` gives the program a terminal to ask on.
TEST_F(Unlock, OnATerminalOnlyAYesBreaks) {
    if (!std::filesystem::exists("/usr/bin/script")) GTEST_SKIP() << "script(1) is not installed";
    const std::string command = std::string("'") + HOLDFAST_PROGRAM + "' unlock a";
    const auto answer = [&](const std::string& text) {
        return box.run_program({"/bin/sh", "-c", "echo " + text + " | script -qec \"" + command + "\" /dev/null"});
    };
    EXPECT_NE(answer("n").status, 0);
    EXPECT_EQ(holder(), grant.text("/lock_id"));
    EXPECT_EQ(answer("y").status, 0);
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/state"), "free");
}

}  // namespace
}  // namespace holdfast::cli_test
