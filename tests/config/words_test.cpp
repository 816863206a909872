// Small parts of the configuration by themselves: words, URLs, policies as text.
#include "config/hints.hpp"
#include "config/nearest.hpp"
#include "config/policy_text.hpp"
#include "config/setting.hpp"
#include "config/store_urls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::config {
namespace {

TEST(Nearest, FindsASlipOfThePenAndNothingElse) {
    const std::vector<std::string> known{"--ttl", "--wait", "--reason"};
    EXPECT_EQ(nearest("--tll", known), "--ttl");
    EXPECT_EQ(nearest("--resaon", known), "--reason");
    EXPECT_EQ(nearest("--completely-different", known), "");
    EXPECT_EQ(nearest("", {"a"}), "");
    EXPECT_EQ(nearest("prun", {"run", "prune"}), "prune") << "begun, and not finished";
    EXPECT_EQ(nearest(std::string(100'000, 'x'), known), "");
}

TEST(ShellQuoting, LeavesPlainWordsAndMakesAnythingElseOneWord) {
    EXPECT_EQ(shell_quoted("migrate/prod"), "migrate/prod");
    EXPECT_EQ(shell_quoted(""), "''");
    EXPECT_EQ(shell_quoted("a b"), "'a b'");
    EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
    EXPECT_EQ(shell_quoted("$(x)"), "'$(x)'");
    EXPECT_EQ(shell_quoted("~"), "'~'");
}

TEST(StoreInAFile, CountsRelativePathsFromThatFilesFolder) {
    EXPECT_EQ(store_from("sqlite:locks.db", "/p"), "sqlite:/p/locks.db");
    EXPECT_EQ(store_from("file:a/b?sync=off", "/p"), "file:/p/a/b?sync=off");
    EXPECT_EQ(store_from("sqlite:x", "/100%?"), "sqlite:/100%25%3f/x");
    EXPECT_EQ(store_from("sqlite:/abs", "/p"), "sqlite:/abs");
    EXPECT_EQ(store_from("redis://h/0", "/p"), "redis://h/0");
    EXPECT_EQ(store_from("memory:", "/p"), "memory:");
    EXPECT_EQ(store_from("nonsense", "/p"), "nonsense");
    EXPECT_EQ(store_from("sqlite:x", "/"), "sqlite:/x") << "two slashes would name a server";
    EXPECT_EQ(store_from("sqlite:x", "/a b"), "sqlite:/a%20b/x");
}

TEST(StoresInAText, AreSeparatedByWhiteSpaceAndEachHasAScheme) {
    EXPECT_EQ(stores_in("sqlite:a").value(), std::vector<std::string>{"sqlite:a"});
    EXPECT_EQ(stores_in(" sqlite:a\n\tfile:b ").value(), (std::vector<std::string>{"sqlite:a", "file:b"}));
    EXPECT_EQ(stores_in(" \n").error().code, Errc::config);
    const auto cut = stores_in("postgres://u:hun ter2@h/db");
    ASSERT_FALSE(cut);
    EXPECT_THAT(cut.error().message, testing::Not(testing::HasSubstr("ter2")));
}

TEST(StoresInAText, AreReadAsTheyWereJoined) {
    const std::vector<std::string> urls{"sqlite:x y.db", "file:/abs"};
    EXPECT_EQ(stores_in(joined_stores(urls, "/p")).value(),
              (std::vector<std::string>{"sqlite:/p/x%20y.db", "file:/abs"}));
}

TEST(Settings, HaveAVariableAndAKey) {
    EXPECT_EQ(variable_of(setting::max_hold), "HOLDFAST_MAX_HOLD");
    EXPECT_EQ(key_of(setting::max_hold), "max_hold");
    EXPECT_EQ(split_choices("fail|skip"), (std::vector<std::string_view>{"fail", "skip"}));
    EXPECT_TRUE(split_choices("").empty());
}

TEST(PolicyText, PutsEveryKeyIntoThePolicyOrSaysWhyNot) {
    using std::chrono::milliseconds;
    client::Policy policy;
    const auto set = [&](const std::string& key, const std::vector<std::string>& texts) {
        return set_policy(policy, key, texts).value_or("");
    };
    for (const std::string_view key : policy_keys)
        EXPECT_EQ(set(std::string(key), {key == "match"                                      ? "a/*"
                                         : key.ends_with("renew") || key.starts_with("may_") ? "off"
                                                                                             : "5s"}),
                  "")
            << key;
    EXPECT_EQ(policy.match, "a/*");
    EXPECT_EQ(policy.ttl, milliseconds{5000});
    EXPECT_EQ(policy.longest_ttl, milliseconds{5000});
    EXPECT_EQ(policy.longest_hold, milliseconds{5000});
    EXPECT_EQ(policy.renew_interval, milliseconds{5000});
    EXPECT_EQ(policy.stale_after, milliseconds{5000});
    EXPECT_EQ(policy.wait, milliseconds{5000});
    EXPECT_EQ(policy.renew, false);
    EXPECT_EQ(policy.may_wait, false);
    EXPECT_EQ(policy.may_unlock, false);
    EXPECT_EQ(policy.unless_held, std::vector<std::string>{"5s"});
    EXPECT_NE(set("ttl", {"soon"}), "");
    EXPECT_NE(set("ttl", {"1s", "2s"}), "");
    EXPECT_NE(set("renew", {"perhaps"}), "");
    policy.wait.reset();
    EXPECT_EQ(set("wait", {"forever"}), "");
    EXPECT_EQ(policy.wait, milliseconds::max());
}

TEST(Hints, OfADaemonRepeatNoFlags) {
    const Error error{Errc::store_unavailable, "x"};
    EXPECT_TRUE(hint_for(error).ends_with("holdfast doctor"));
    EXPECT_TRUE(hint_for(error, {" -s file:x"}).ends_with("holdfast doctor -s file:x"));
}

}  // namespace
}  // namespace holdfast::config
