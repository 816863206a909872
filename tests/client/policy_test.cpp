#include "client/policy.hpp"

#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using client::match_name;
using client::Policy;
using client::terms_for;
using client::Wish;
using testing::ElementsAre;
using testing::Optional;

TEST(MatchName, AStarStandsForTextWithoutASlash) {
    EXPECT_THAT(match_name("project/*/edit", "project/42/edit"), Optional(ElementsAre("42")));
    EXPECT_FALSE(match_name("project/*/edit", "project/4/2/edit"));
    EXPECT_FALSE(match_name("project/*", "project/42/edit"));
    EXPECT_THAT(match_name("*-*", "a-b"), Optional(ElementsAre("a", "b")));
    EXPECT_THAT(match_name("a*", "a"), Optional(ElementsAre("")));
}

TEST(MatchName, TwoStarsStandForAnyText) {
    EXPECT_THAT(match_name("project/**", "project/42/edit"), Optional(ElementsAre("42/edit")));
    EXPECT_THAT(match_name("**", ""), Optional(ElementsAre("")));
}

TEST(MatchName, OtherTextStandsForItself) {
    EXPECT_TRUE(match_name("a.c", "a.c"));
    EXPECT_FALSE(match_name("a.c", "abc"));
    EXPECT_FALSE(match_name("A", "a"));
    EXPECT_FALSE(match_name("a", "ab"));
}

TEST(Terms, AreTheDefaultsWithoutAPolicy) {
    const auto terms = must(terms_for(lock("x"), {}, {}));
    EXPECT_EQ(terms.ttl.time(), 30s);
    EXPECT_EQ(terms.wait, 0ms);
    EXPECT_TRUE(terms.renew);
    EXPECT_FALSE(terms.max_hold);
}

TEST(Terms, ComeFromTheFirstPolicyThatMatches) {
    const std::vector policies{Policy{.match = "a/*", .ttl = 10s}, Policy{.match = "**", .ttl = 20s}};
    EXPECT_EQ(must(terms_for(lock("a/b"), policies, {})).ttl.time(), 10s);
    EXPECT_EQ(must(terms_for(lock("b"), policies, {})).ttl.time(), 20s);
}

TEST(Terms, GiveTheCallerWhatItAsksForWithinTheLimits) {
    const std::vector policies{Policy{.match = "**", .ttl = 10s, .longest_ttl = 1min, .longest_hold = 1h, .wait = 5s}};
    const auto terms = must(terms_for(lock("x"), policies, {.ttl = 30s, .max_hold = 10min, .wait = 0ms}));
    EXPECT_EQ(terms.ttl.time(), 30s);
    EXPECT_EQ(terms.max_hold, 10min);
    EXPECT_EQ(terms.wait, 0ms);
}

TEST(Terms, RefuseWhatGoesBeyondTheLimits) {
    const std::vector policies{Policy{.match = "**", .longest_ttl = 1min, .longest_hold = 1h}};
    EXPECT_THAT(terms_for(lock("x"), policies, {.ttl = 61s}), RefusedWith(Errc::usage));
    EXPECT_THAT(terms_for(lock("x"), policies, {.max_hold = 2h}), RefusedWith(Errc::usage));
    EXPECT_EQ(must(terms_for(lock("x"), policies, {})).max_hold, 1h) << "the longest hold binds who names none, too";
}

TEST(Terms, FillInTheNamesThatExclude) {
    const std::vector policies{Policy{.match = "project/*/edit", .unless_held = {"project/*/propagation"}}};
    EXPECT_THAT(must(terms_for(lock("project/42/edit"), policies, {})).unless_held,
                ElementsAre(lock("project/42/propagation")));
    const std::vector broken{Policy{.match = "project/*", .unless_held = {"*/*"}}};
    EXPECT_THAT(terms_for(lock("project/42"), broken, {}), RefusedWith(Errc::config));
}

}  // namespace
}  // namespace holdfast::tests
