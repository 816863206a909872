// Goal: a command inside knows exactly the leases that it runs under, and every other variable is left alone. Method:
// the functions that read and write the environment, in this process.
#include "cli/lease_environment.hpp"

#include "json/lease_list.hpp"
#include "support/matchers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace holdfast::cli {
namespace {

using tests::must;
using tests::RefusedWith;

class LeaseEnvironment : public testing::Test {
protected:
    ~LeaseEnvironment() override {
        for (const std::string& name : set_) unsetenv(name.c_str());
    }
    void set(const std::string& name, const std::string& value) {
        setenv(name.c_str(), value.c_str(), 1);
        set_.push_back(name);
    }
    static InheritedLease lease(const std::string& name) {
        return {*LockName::parse(name), Credentials::random(), FencingToken{7}, StoreId::random(), "soon"};
    }
    /// Sets the variables of one lease, without its store.
    void set_numbered(const InheritedLease& lease, const std::string& place) {
        set("HOLDFAST_LOCK" + place, lease.name.text());
        set("HOLDFAST_LEASE" + place, lease.as.reveal());
        set("HOLDFAST_TOKEN" + place, std::to_string(lease.token->value));
        set("HOLDFAST_EXPIRES_AT" + place, lease.expires_at);
    }
    void set_list(const std::vector<InheritedLease>& leases) {
        std::vector<json::ListedLease> list;
        for (const InheritedLease& each : leases)
            list.push_back({.store_id = each.store_id, .name = each.name, .token = each.token, .as = each.as});
        set("HOLDFAST_LEASES", json::lease_list(list).written());
    }
    /// What a child with `leases` is given, by name. Fails the test when a variable is there twice.
    static std::map<std::string, std::string> given(const std::vector<InheritedLease>& leases,
                                                    const config::StoreForChild& store = {}) {
        std::map<std::string, std::string> all;
        for (const std::string& entry : environment_with(leases, store)) {
            const auto at = entry.find('=');
            EXPECT_TRUE(all.emplace(entry.substr(0, at), entry.substr(at + 1)).second) << entry;
        }
        return all;
    }

    std::vector<std::string> set_;
};

TEST_F(LeaseEnvironment, ReplacesTheVariablesOfLeasesAndNoOthers) {
    const std::vector<std::string> others{"HOLDFAST_LOCKS",    "HOLDFAST_LOCK_",   "HOLDFAST_TOKEN_2X",
                                          "HOLDFAST_LEASE_X",  "MY_HOLDFAST_LOCK", "HOLDFAST_RUNNER",
                                          "HOLDFAST_LEASES_2", "HOLDFAST_TTL",     "HOLDFAST_EXPIRES"};
    const std::vector<std::string> of_leases{"HOLDFAST_LOCK_3",         "HOLDFAST_LEASE_12", "HOLDFAST_TOKEN",
                                             "HOLDFAST_EXPIRES_AT_2",   "HOLDFAST_LOCK_ID",  "HOLDFAST_LOCK_ID_9",
                                             "HOLDFAST_EXPIRES_AT_100", "HOLDFAST_LEASES"};
    for (const std::string& name : others) set(name, "theirs");
    for (const std::string& name : of_leases) set(name, "old");
    const auto all = given({});
    for (const std::string& name : others) EXPECT_EQ(all.at(name), "theirs") << name;
    for (const std::string& name : of_leases) EXPECT_FALSE(all.contains(name)) << name;
}

TEST_F(LeaseEnvironment, IsWrittenInTheOrderOfTheLeases) {
    InheritedLease one = lease("one");
    InheritedLease two = lease("two");
    two.token.reset();
    two.expires_at.clear();
    const auto all = given({one, two, lease("three")});
    EXPECT_EQ(all.at("HOLDFAST_LOCK"), "one");
    EXPECT_EQ(all.at("HOLDFAST_LEASE"), one.as.reveal());
    EXPECT_EQ(all.at("HOLDFAST_LOCK_ID"), one.as.lock_id.text());
    EXPECT_EQ(all.at("HOLDFAST_TOKEN"), "7");
    EXPECT_EQ(all.at("HOLDFAST_EXPIRES_AT"), "soon");
    EXPECT_EQ(all.at("HOLDFAST_LOCK_2"), "two");
    EXPECT_EQ(all.at("HOLDFAST_LEASE_2"), two.as.reveal());
    EXPECT_EQ(all.at("HOLDFAST_LOCK_ID_2"), two.as.lock_id.text());
    EXPECT_FALSE(all.contains("HOLDFAST_TOKEN_2"));
    EXPECT_FALSE(all.contains("HOLDFAST_EXPIRES_AT_2"));
    EXPECT_EQ(all.at("HOLDFAST_LOCK_3"), "three");
    EXPECT_FALSE(all.contains("HOLDFAST_LOCK_1") || all.contains("HOLDFAST_LOCK_4"));
}

TEST_F(LeaseEnvironment, IsReadAsItWasWritten) {
    const std::vector<InheritedLease> leases{lease("one"), lease("two"), lease("one")};
    for (const auto& [name, value] : given(leases))
        if (name.starts_with("HOLDFAST_")) set(name, value);
    const auto read = must(inherited_leases());
    ASSERT_EQ(read.size(), 3U) << "each once";
    for (std::size_t i = 0; i < leases.size(); ++i) {
        EXPECT_EQ(read[i].name, leases[i].name);
        EXPECT_EQ(read[i].as, leases[i].as);
        EXPECT_EQ(read[i].token, leases[i].token);
        EXPECT_EQ(read[i].store_id, leases[i].store_id);
        EXPECT_EQ(read[i].expires_at, "soon");
    }
    const auto named = must(inherited_leases(*LockName::parse("one")));
    ASSERT_EQ(named.size(), 2U);
    EXPECT_EQ(named[0].as, leases[0].as);
    EXPECT_EQ(named[1].as, leases[2].as);
}

TEST_F(LeaseEnvironment, WhatAShellTookLaterComesFirstAndTheListStillCounts) {
    const InheritedLease outer = lease("outer");
    const InheritedLease later = lease("later");
    set_list({outer});
    set_numbered(later, "");
    const auto read = must(inherited_leases());
    ASSERT_EQ(read.size(), 2U);
    EXPECT_EQ(read[0].as, later.as);
    EXPECT_FALSE(read[0].store_id) << "a shell does not know it";
    EXPECT_EQ(read[1].as, outer.as);
    EXPECT_EQ(read[1].store_id, outer.store_id);
    EXPECT_EQ(read[1].token, outer.token);
}

TEST_F(LeaseEnvironment, OneLeaseOnTwoStoresOfTheListIsTwo) {
    const InheritedLease one = lease("one");
    InheritedLease two = one;
    two.store_id = StoreId::random();
    set_list({one, two});
    set_numbered(one, "");
    const auto read = must(inherited_leases());
    ASSERT_EQ(read.size(), 2U);
    EXPECT_EQ(read[0].store_id, one.store_id);
    EXPECT_EQ(read[1].store_id, two.store_id);
}

TEST_F(LeaseEnvironment, ALeaseOfAnotherLockWithTheSameKeyIsAnother) {
    const InheritedLease one = lease("one");
    InheritedLease two = one;
    two.name = *LockName::parse("two");
    set_list({two});
    set_numbered(one, "");
    const auto read = must(inherited_leases());
    ASSERT_EQ(read.size(), 2U);
    EXPECT_FALSE(read[0].store_id);
}

TEST_F(LeaseEnvironment, NumberedLeasesEndAtTheFirstThatIsMissingOrMalformed) {
    set_numbered(lease("one"), "");
    set_numbered(lease("two"), "_2");
    set_numbered(lease("four"), "_4");
    EXPECT_EQ(must(inherited_leases()).size(), 2U);
    set("HOLDFAST_LEASE_2", "nonsense");
    EXPECT_EQ(must(inherited_leases()).size(), 1U);
    set("HOLDFAST_LOCK", "");
    EXPECT_TRUE(must(inherited_leases()).empty());
    set("HOLDFAST_LEASES", "nonsense");
    EXPECT_THAT(inherited_leases(), RefusedWith(Errc::usage));
}

TEST_F(LeaseEnvironment, ATokenThatIsNoneIsAbsent) {
    set_numbered(lease("one"), "");
    const auto token = [&](const std::string& text) {
        set("HOLDFAST_TOKEN", text);
        return must(inherited_leases()).front().token;
    };
    EXPECT_EQ(token("12"), FencingToken{12});
    EXPECT_EQ(token(std::to_string(FencingToken::limit - 1)), FencingToken{FencingToken::limit - 1});
    for (const std::string& text :
         {std::string(""), std::string("12x"), std::string("-1"), std::to_string(FencingToken::limit)})
        EXPECT_EQ(token(text), std::nullopt) << text;
}

TEST_F(LeaseEnvironment, TheStoreIsReplacedWithheldOrLeftAsItIs) {
    set("HOLDFAST_STORE", "outer");
    set("HOLDFAST_STORE_FILE", "outer file");
    set("HOLDFAST_STORE_WITHHELD", "before");
    const auto stores = [](const config::StoreForChild& store) {
        std::map<std::string, std::string> found;
        for (const auto& [name, value] : given({}, store))
            if (name.starts_with("HOLDFAST_STORE")) found.emplace(name, value);
        return found;
    };
    using Found = std::map<std::string, std::string>;
    EXPECT_EQ(stores({}), (Found{{"HOLDFAST_STORE", "outer"}, {"HOLDFAST_STORE_FILE", "outer file"}}));
    EXPECT_EQ(stores({.urls = "inner"}), (Found{{"HOLDFAST_STORE", "inner"}}));
    EXPECT_EQ(stores({.file = "inner file"}), (Found{{"HOLDFAST_STORE_FILE", "inner file"}}));
    EXPECT_EQ(stores({.withheld = "why"}), (Found{{"HOLDFAST_STORE_WITHHELD", "why"}}));
}

}  // namespace
}  // namespace holdfast::cli
