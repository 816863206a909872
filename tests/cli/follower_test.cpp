// Following the events of locks: which locks, each event once, and a store that begins again.
#include "cli/follow.hpp"
#include "holdfast/open.hpp"
#include "sandbox.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::cli {
namespace {

using cli_test::Sandbox;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class Following : public testing::Test {
protected:
    std::unique_ptr<Store> store(const std::string& file) {
        auto opened = open_store("sqlite:" + (box.root / file).string() + "?sync=off");
        EXPECT_TRUE(opened);
        return std::move(*opened);
    }
    Deadline soon() const { return Deadline::in(host_clock(), std::chrono::seconds{20}); }

    void take_and_give_back(Store& store, const std::string& name) {
        const Acquire take{.name = *LockName::parse(name),
                           .as = Credentials::random(),
                           .holder = {"me", ""},
                           .ttl = *Ttl::of(std::chrono::hours{1})};
        EXPECT_TRUE(store.apply_one(take, soon()));
        EXPECT_TRUE(store.apply_one(Release{take.name, take.as}, soon()));
    }
    /// What the follower tells next, as `name seq`.
    std::vector<std::string> told(Follower& follower, Store& store) {
        std::vector<std::string> told;
        const auto events = follower.look(store, soon());
        EXPECT_TRUE(events);
        for (const AuditEvent& event : *events) told.push_back(fmt::format("{} {}", event.name.text(), event.seq));
        return told;
    }

    Sandbox box;
};

TEST_F(Following, APatternSelectsWhatItMatchesAndNothingElse) {
    const std::vector<std::string> names{"a/x", "b/x", "b/y", "bx", "c/[x]", "c/d/x"};
    const std::vector<std::pair<std::string, std::vector<std::string>>> table{
        {"", names},
        {"*", names},
        {"b/*", {"b/x", "b/y"}},
        {"b/?", {"b/x", "b/y"}},
        {"b?*", {"b/x", "b/y", "bx"}},
        {"[ab]/x", {"a/x", "b/x"}},
        {"c/*", {"c/[x]", "c/d/x"}},
        {"c/\\[x]", {"c/[x]"}},
        {"b/x", {"b/x"}},
        {"b", {}},
        {"*x", {"a/x", "b/x", "bx", "c/d/x"}},
    };
    int stores = 0;
    for (const auto& [pattern, expected] : table) {
        const auto used = store(fmt::format("{}.db", stores++));
        Follower follower(std::nullopt, pattern);
        ASSERT_TRUE(follower.start(*used, soon()));
        for (const std::string& name : names) take_and_give_back(*used, name);
        std::vector<std::string> events;
        for (const std::string& name : expected) {
            events.push_back(name + " 1");
            events.push_back(name + " 2");
        }
        EXPECT_THAT(told(follower, *used), testing::UnorderedElementsAreArray(events)) << pattern;
        EXPECT_THAT(told(follower, *used), IsEmpty()) << pattern << ": each event once";
    }
}

TEST_F(Following, ANameIsNoPattern) {
    const auto used = store("locks.db");
    Follower follower(LockName::parse("a*").value(), "");
    ASSERT_TRUE(follower.start(*used, soon()));
    for (const char* name : {"a*", "ab", "a*b"}) take_and_give_back(*used, name);
    EXPECT_THAT(told(follower, *used), ElementsAre("a* 1", "a* 2"));
}

TEST_F(Following, WhatIsThereAtTheBeginningIsNotTold) {
    const auto used = store("locks.db");
    take_and_give_back(*used, "a");
    Follower follower(std::nullopt, "");
    ASSERT_TRUE(follower.start(*used, soon()));
    EXPECT_THAT(told(follower, *used), IsEmpty());
    take_and_give_back(*used, "a");
    take_and_give_back(*used, "b");
    EXPECT_THAT(told(follower, *used), UnorderedElementsAre("a 3", "a 4", "b 1", "b 2"));
}

// Wiped, or restored from an old copy.
TEST_F(Following, AStoreThatBeginsAgainIsToldFromItsBeginning) {
    const auto old_one = store("old.db");
    for (int i = 0; i < 3; ++i) take_and_give_back(*old_one, "a");
    Follower follower(std::nullopt, "");
    ASSERT_TRUE(follower.start(*old_one, soon()));
    const auto new_one = store("new.db");
    take_and_give_back(*new_one, "a");
    EXPECT_THAT(told(follower, *new_one), ElementsAre("a 1", "a 2"));
    take_and_give_back(*new_one, "a");
    EXPECT_THAT(told(follower, *new_one), ElementsAre("a 3", "a 4"));
}

}  // namespace
}  // namespace holdfast::cli
