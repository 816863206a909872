// Waiting in line and following what happens, with real processes.
#include "sandbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <sstream>

namespace holdfast::cli_test {
namespace {

class Waiting : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override { box.environment["HOLDFAST_STORE"] = GetParam(); }

    std::int64_t waiters() { return box.run({"status", "a", "--json"}).json().number("/waiters"); }
    std::string lease() { return box.run({"acquire", "a", "--ttl", "1h", "--json"}).json().text("/lease"); }
    void release(const std::string& lease) {
        ASSERT_EQ(box.run({"release", "a"}, {{"HOLDFAST_LEASE", lease}}).status, 0);
    }

    /// How often a waiter has said that it waits.
    static int notes(std::string_view text) {
        int count = 0;
        for (auto at = text.find("waiting: "); at != std::string_view::npos; at = text.find("waiting: ", at + 1))
            ++count;
        return count;
    }

    Sandbox box;
};

TEST_P(Waiting, AWaiterGetsTheLockWhenItIsReleased) {
    const std::string first = lease();
    auto second = box.start({"acquire", "a", "--wait", "1m", "--json"});
    ASSERT_TRUE(eventually([&] { return waiters() == 1; }));
    release(first);
    const auto granted = second.wait();
    EXPECT_EQ(granted.status, 0) << granted.out << granted.err;
    EXPECT_EQ(waiters(), 0);
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/lock_id"), granted.json().text("/lock_id"));
}

TEST_P(Waiting, AReleaseTellsWhoHasTheLockNow) {
    const std::string first = lease();
    auto second = box.start({"acquire", "a", "--wait", "1m", "--holder", "second"});
    ASSERT_TRUE(eventually([&] { return waiters() == 1; }));
    const auto released = box.run({"release", "a"}, {{"HOLDFAST_LEASE", first}});
    EXPECT_EQ(released.out, "a is released, and second has it now\n");
    EXPECT_EQ(second.wait().status, 0);
}

TEST_P(Waiting, ForeverIsAWaitToo) {
    const std::string first = lease();
    auto second = box.start({"acquire", "a", "--wait", "forever", "--json"});
    ASSERT_TRUE(eventually([&] { return waiters() == 1; }));
    release(first);
    EXPECT_EQ(second.wait().status, 0);
}

TEST_P(Waiting, TheFirstWaiterIsServedFirst) {
    const std::string first = lease();
    auto second = box.start({"acquire", "a", "--wait", "1m", "--holder", "second", "--ttl", "1h", "--json"});
    ASSERT_TRUE(eventually([&] { return waiters() == 1; }));
    auto third = box.start({"acquire", "a", "--wait", "1m", "--holder", "third", "--ttl", "1h", "--json"});
    ASSERT_TRUE(eventually([&] { return waiters() == 2; }));
    release(first);
    const auto granted = second.wait();
    ASSERT_EQ(granted.status, 0);
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/holder"), "second");
    release(granted.json().text("/lease"));
    EXPECT_EQ(third.wait().status, 0);
}

TEST_P(Waiting, AWaitThatEndsIsAConflictAndLeavesTheLine) {
    lease();
    const auto ended = box.run({"acquire", "a", "--wait", "200ms", "--json"});
    EXPECT_EQ(ended.status, 75);
    EXPECT_EQ(ended.code(), "E_LOCK_CONFLICT");
    EXPECT_EQ(waiters(), 0);
    EXPECT_EQ(box.run({"acquire", "a", "-n"}, {{"HOLDFAST_WAIT", "forever"}}).status, 75);
}

// It looks many times while one of them is in the way: a line for each look would fill a log.
TEST_P(Waiting, EachHolderInTheWayIsToldOnce) {
    const auto other = box.run({"acquire", "other", "--holder", "first", "--ttl", "1h", "--json"}).json();
    const Args wait{"acquire", "b", "--unless-held", "other", "--ttl", "80ms", "--wait"};
    const auto waiting = [&](const Args& more) {
        Args args = wait;
        args.insert(args.end(), more.begin(), more.end());
        return args;
    };
    const auto ended = box.run(waiting({"400ms"}));
    EXPECT_EQ(ended.status, 75);
    EXPECT_EQ(notes(ended.err), 1) << ended.err;
    for (const char* silent : {"-q", "--json"}) EXPECT_EQ(notes(box.run(waiting({"1ms", silent})).err), 0) << silent;

    auto waiter = box.start(waiting({"1m"}));
    ASSERT_TRUE(eventually([&] { return waiter.err().contains("waiting: other is held by first"); })) << waiter.err();
    const auto next =
        box.run({"transfer", "other", "--to", "second", "--json"}, {{"HOLDFAST_LEASE", other.text("/lease")}});
    ASSERT_EQ(next.status, 0) << next.out;
    ASSERT_TRUE(eventually([&] { return waiter.err().contains("waiting: other is held by second"); })) << waiter.err();
    ASSERT_EQ(box.run({"release", "other"}, {{"HOLDFAST_LEASE", next.json().text("/lease")}}).status, 0);
    const auto granted = waiter.wait();
    EXPECT_EQ(granted.status, 0) << granted.err;
    EXPECT_EQ(notes(granted.err), 2) << granted.err;
}

TEST_P(Waiting, ASignalEndsTheWaitAndLeavesTheLine) {
    const std::string first = lease();
    for (const int number : {SIGTERM, SIGINT}) {
        auto second = box.start({"acquire", "a", "--wait", "forever", "--json"});
        ASSERT_TRUE(eventually([&] { return waiters() == 1; }));
        second.signal(number);
        const auto ended = second.wait();
        EXPECT_EQ(ended.status, 128 + number);
        EXPECT_EQ(ended.code(), "E_LOCK_CONFLICT");
        EXPECT_EQ(waiters(), 0);
    }
    release(first);
    EXPECT_EQ(box.run({"status", "a", "--json"}).json().text("/state"), "free");
}

// As under `nohup`, or in the background of a script.
TEST_P(Waiting, ASignalThatTheCallerIgnoresEndsNeitherTheWaitNorAWatch) {
    const std::string first = lease();
    const std::string script = "trap '' HUP INT; exec '" + box.program + "' \"$@\"";
    auto second = box.start_program({"/bin/sh", "-c", script, "sh", "acquire", "a", "--wait", "forever", "--json"});
    auto follow = box.start_program({"/bin/sh", "-c", script, "sh", "history", "--follow", "--json"});
    ASSERT_TRUE(eventually([&] { return waiters() == 1 && std::ranges::count(follow.out(), '\n') == 1; }));
    for (const int number : {SIGHUP, SIGINT}) {
        second.signal(number);
        follow.signal(number);
    }
    release(first);
    EXPECT_EQ(second.wait().status, 0);
    EXPECT_TRUE(eventually([&] { return std::ranges::count(follow.out(), '\n') >= 3; })) << follow.err();
}

TEST_P(Waiting, WatchPrintsEachMatchingEventOnALineOfItsOwn) {
    // The store must be there and have a past, which watch does not repeat.
    release(lease());
    auto watch = box.start({"watch", "b/*x", "--json"});
    auto follow = box.start({"history", "--follow", "--json"});
    ASSERT_TRUE(eventually([&] { return std::ranges::count(follow.out(), '\n') == 2; }));
    // Until watch has taken its first look, an event may count as its past.
    int made = 0;
    ASSERT_TRUE(eventually([&] {
        EXPECT_EQ(box.run({"acquire", "b/" + std::to_string(made++), "--ttl", "1h"}).status, 0);
        EXPECT_EQ(box.run({"acquire", "b/" + std::to_string(made) + "x", "--ttl", "1h"}).status, 0);
        return !watch.out().empty();
    }));
    ASSERT_TRUE(eventually([&] { return std::ranges::count(follow.out(), '\n') == 2 + 2 * made; }));
    watch.signal(SIGTERM);
    follow.signal(SIGINT);
    const auto seen = watch.wait();
    EXPECT_EQ(seen.status, 128 + SIGTERM);
    EXPECT_EQ(follow.wait().status, 128 + SIGINT);
    std::istringstream lines(seen.out);
    for (std::string text; std::getline(lines, text);) {
        const auto line = Document::parse(text);
        ASSERT_TRUE(line) << text;
        EXPECT_EQ(line->text("/event"), "acquired");
        EXPECT_THAT(line->text("/name"), testing::MatchesRegex("b/.*x"));
    }
}

TEST_P(Waiting, WatchEndsQuietlyWhenNobodyReadsAnyMore) {
    release(lease());
    const std::string script = std::string("'") + HOLDFAST_PROGRAM + "' history --follow | head -n 1";
    const auto pipe = box.run_program({"/bin/sh", "-c", script});
    EXPECT_EQ(pipe.status, 0);
    EXPECT_EQ(pipe.err, "");
}

INSTANTIATE_TEST_SUITE_P(Stores, Waiting, testing::ValuesIn(stores()),
                         [](const auto& test) { return test.param.substr(0, test.param.find(':')); });

}  // namespace
}  // namespace holdfast::cli_test
