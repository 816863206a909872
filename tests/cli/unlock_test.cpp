// Taking a lock away: never without being asked twice, never from anybody but the one that was shown.
#include "sandbox.hpp"
#include "support/isolation.hpp"

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
    EXPECT_THAT(refused.json().text("/error/message"), testing::HasSubstr("--yes"));
    EXPECT_EQ(refused.json().text("/error/holder/holder"), "victim");
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

TEST_F(Unlock, SaysUntilWhenTheOldCommandMayStillRun) {
    const auto in_words = box.run({"unlock", "a", "--yes"});
    const std::string until = grant.text("/expires_at").substr(11, 8);
    // Before midnight the day stands between the two.
    EXPECT_THAT(in_words.out, testing::ContainsRegex("its command may still run until ([0-9-]+ )?" + until + " UTC"));
    const auto taken = box.run({"acquire", "a", "--ttl", "1h", "--json"}).json();
    const auto told = box.run({"unlock", "a", "--yes", "--json"}).json();
    EXPECT_EQ(told.text("/may_run_until"), taken.text("/expires_at"));
}

TEST_F(Unlock, OfALeaseThatHasRunOutSaysNothingOfItsCommand) {
    ASSERT_EQ(box.run({"acquire", "b", "--ttl", "50ms"}).status, 0);
    ASSERT_TRUE(eventually([&] { return box.run({"status", "b", "--json"}).json().text("/state") == "expired"; }));
    const auto told = box.run({"unlock", "b", "--yes", "--json"});
    EXPECT_EQ(told.status, 0);
    EXPECT_FALSE(told.json().has("/may_run_until"));
    ASSERT_EQ(box.run({"acquire", "b", "--ttl", "50ms"}).status, 0);
    ASSERT_TRUE(eventually([&] { return box.run({"status", "b", "--json"}).json().text("/state") == "expired"; }));
    EXPECT_THAT(box.run({"unlock", "b", "--yes"}).out, testing::Not(testing::HasSubstr("may still run")));
}

TEST_F(Unlock, AFreeLockCannotBeBroken) {
    EXPECT_EQ(box.run({"unlock", "other", "--yes", "--json"}).code(), "E_LOCK_NOT_HELD");
    EXPECT_EQ(box.run({"unlock", "other", "--yes"}).status, 79);
}

TEST_F(Unlock, OnATerminalOnlyAYesBreaks) {
    for (const char* no : {"n\n", "\n", "perhaps\n", "yesterday\n", "\x04"}) {
        const auto refused = box.run_on_terminal({"unlock", "a"}, no);
        EXPECT_EQ(refused.status, 77) << "a decision, and no mistake in the call";
        EXPECT_THAT(refused.err, testing::HasSubstr("Take it away from them? [y/N] "));
        EXPECT_THAT(refused.err, testing::HasSubstr("E_DENIED: you did not agree, so a stays with victim"));
        EXPECT_THAT(refused.err, testing::HasSubstr("nothing was changed"));
        EXPECT_EQ(holder(), grant.text("/lock_id"));
    }
    EXPECT_EQ(box.run_on_terminal({"unlock", "a", "--json"}, "n\n").code(), "E_DENIED");
    EXPECT_EQ(holder(), grant.text("/lock_id"));
    EXPECT_EQ(box.run_on_terminal({"unlock", "a"}, "y\n").status, 0);
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/state"), "free");
}

}  // namespace
}  // namespace holdfast::cli_test
