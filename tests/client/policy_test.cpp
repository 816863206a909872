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

TEST(Terms, CutTheDefaultTtlToTheLimits) {
    const std::vector ttl{Policy{.match = "**", .longest_ttl = 10s}};
    EXPECT_EQ(must(terms_for(lock("x"), ttl, {})).ttl.time(), 10s);
    const std::vector hold{Policy{.match = "**", .longest_hold = 7s}};
    EXPECT_EQ(must(terms_for(lock("x"), hold, {})).ttl.time(), 7s);
    const std::vector both{Policy{.match = "**", .longest_ttl = 20s, .longest_hold = 5s}};
    EXPECT_EQ(must(terms_for(lock("x"), both, {})).ttl.time(), 5s);
    const std::vector wide{Policy{.match = "**", .longest_ttl = 1h, .longest_hold = 2h}};
    EXPECT_EQ(must(terms_for(lock("x"), wide, {})).ttl.time(), 30s);
    EXPECT_THAT(terms_for(lock("x"), ttl, {.ttl = 30s}), RefusedWith(Errc::usage)) << "what is asked for is not cut";
}

TEST(Terms, OfALockThatNobodyMayWaitForRefuseToWait) {
    const std::vector policies{Policy{.match = "fast/*", .may_wait = false}};
    const auto refused = terms_for(lock("fast/x"), policies, {.wait = 1min});
    ASSERT_THAT(refused, RefusedWith(Errc::usage));
    EXPECT_THAT(refused.error().message, testing::HasSubstr("\"fast/*\""));
    EXPECT_THAT(refused.error().message, testing::HasSubstr("may_wait"));
    EXPECT_EQ(must(terms_for(lock("fast/x"), policies, {.wait = 0ms})).wait, 0ms);
    EXPECT_EQ(must(terms_for(lock("slow/x"), policies, {.wait = 1min})).wait, 1min);
    // A default of the caller gives way.
    EXPECT_EQ(must(terms_for(lock("fast/x"), policies, {.wait = 1min, .wait_is_usual = true})).wait, 0ms);
}

TEST(Terms, OfAPolicyThatContradictsItselfAreRefused) {
    const std::vector wait{Policy{.match = "**", .wait = 1s, .may_wait = false}};
    EXPECT_THAT(terms_for(lock("x"), wait, {}), RefusedWith(Errc::config));
    const std::vector ttl{Policy{.match = "**", .ttl = 2min, .longest_ttl = 1min}};
    EXPECT_THAT(terms_for(lock("x"), ttl, {}), RefusedWith(Errc::config));
}

TEST(Terms, FillInTheNamesThatExclude) {
    const std::vector policies{Policy{.match = "project/*/edit", .unless_held = {"project/*/propagation"}}};
    EXPECT_THAT(must(terms_for(lock("project/42/edit"), policies, {})).unless_held,
                ElementsAre(lock("project/42/propagation")));
    const auto both = must(terms_for(lock("project/42/edit"), policies,
                                     {.unless_held = {lock("freeze"), lock("project/42/propagation")}}));
    EXPECT_THAT(both.unless_held, ElementsAre(lock("freeze"), lock("project/42/propagation")))
        << "what the caller names is added to it, and named once";
    const auto added = must(terms_for(lock("project/42/edit"), policies, {.unless_held = {lock("freeze")}}));
    EXPECT_THAT(added.unless_held, ElementsAre(lock("freeze"), lock("project/42/propagation")))
        << "a caller cannot switch the policy's off by naming another";
    const std::vector broken{Policy{.match = "project/*", .unless_held = {"*/*"}}};
    EXPECT_THAT(terms_for(lock("project/42"), broken, {}), RefusedWith(Errc::config));
}

TEST(Terms, SayWhenALeaseIsStale) {
    const std::vector policies{Policy{.match = "a", .ttl = 30min, .renew_interval = 5min, .stale_after = 10min}};
    EXPECT_EQ(must(terms_for(lock("a"), policies, {})).stale_after, 10min);
    EXPECT_FALSE(must(terms_for(lock("b"), policies, {})).stale_after);
}

TEST(Terms, CallNoHolderStaleThatRenewsInTime) {
    const auto refused = [](const Policy& policy) { return !terms_for(lock("a"), {policy}, {}); };
    EXPECT_TRUE(refused({.match = "a", .renew_interval = 5min, .stale_after = 5min}));
    EXPECT_TRUE(refused({.match = "a", .renew = false, .stale_after = 5min}));
    EXPECT_FALSE(refused({.match = "a", .renew_interval = 5min, .stale_after = 6min}));
}

}  // namespace
}  // namespace holdfast::tests
