// Which locks a list shows.
#include "conformance/store_conformance.hpp"

namespace holdfast::tests {

using namespace std::chrono_literals;

namespace {

std::vector<std::string> names_in(const std::vector<LockStatus>& locks) {
    std::vector<std::string> names;
    for (const LockStatus& status : locks) names.push_back(status.name.text());
    return names;
}

}  // namespace

TEST_P(StoreConformance, AListShowsWhatIsHeldOrExpiredAndOnRequestWhatIsFree) {
    const Acquire gone = by_alice(lock("c"));
    granted(by_alice(lock("b"), 1s));
    granted(by_alice(lock("a"), 1h));
    granted(gone);
    granted(release(gone));
    EXPECT_FALSE(apply(release(by_bob(lock("never")))));
    elapse(2s);

    const auto held = must(store().list({}, soon()));
    EXPECT_EQ(names_in(held), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(held[0].state, LockState::held);
    EXPECT_EQ(held[1].state, LockState::expired);
    const auto all = must(store().list({.with_free = true}, soon()));
    EXPECT_EQ(names_in(all), (std::vector<std::string>{"a", "b", "c"}));
    for (const LockStatus& status : all) EXPECT_EQ(status, inspect(status.name));
}

TEST_P(StoreConformance, APrefixIsComparedByteByByte) {
    for (const char* name : {"a", "ab", "a%", "a_b", "a*", "A", "b/a", "é", "è"}) granted(by_alice(lock(name)));
    const auto with_prefix = [&](const std::string& prefix) {
        return names_in(must(store().list({.prefix = prefix}, soon())));
    };
    using Names = std::vector<std::string>;
    EXPECT_EQ(with_prefix("a"), (Names{"a", "a%", "a*", "a_b", "ab"}));
    EXPECT_EQ(with_prefix("a%"), Names{"a%"});
    EXPECT_EQ(with_prefix("a_"), Names{"a_b"});
    EXPECT_EQ(with_prefix("a*"), Names{"a*"});
    EXPECT_EQ(with_prefix("A"), Names{"A"});
    EXPECT_EQ(with_prefix("\xc3"), (Names{"è", "é"})) << "half a character is a prefix too";
    EXPECT_EQ(with_prefix("b/"), Names{"b/a"});
    EXPECT_EQ(with_prefix("zzz"), Names{});
    EXPECT_EQ(with_prefix("' OR 1=1--"), Names{});
}

TEST_P(StoreConformance, ChangedSinceShowsLocksWithAnEventAtOrAfterThatTime) {
    const Acquire old = by_alice(lock("old"), 1h);
    granted(old);
    elapse(1s);
    const Acquire freed = by_alice(lock("freed"), 1h);
    granted(freed);
    elapse(1s);
    const Instant since = now();
    granted(release(freed));
    EXPECT_THAT(must(store().list({.changed_since = since}, soon())), testing::IsEmpty());
    EXPECT_EQ(names_in(must(store().list({.with_free = true, .changed_since = since}, soon()))),
              std::vector<std::string>{"freed"});
    EXPECT_EQ(must(store().list({.with_free = true, .changed_since = since + 1ms}, soon())).size(), 0U);
    EXPECT_EQ(must(store().list({.with_free = true, .changed_since = since - 2s}, soon())).size(), 2U);
}

TEST_P(StoreConformance, AListCountsTheWaiters) {
    granted(by_alice(lock("x"), 1h));
    EXPECT_FALSE(apply(queued(by_bob(lock("x")), 1s)));
    EXPECT_FALSE(apply(queued(by_carol(lock("x")), 5s)));
    EXPECT_EQ(must(store().list({}, soon())).front().waiters, 2U);
    elapse(2s);
    EXPECT_EQ(must(store().list({}, soon())).front().waiters, 1U);
}

}  // namespace holdfast::tests
