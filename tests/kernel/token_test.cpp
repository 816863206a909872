// The fencing token: max(previous + 1, the store's clock in milliseconds), for every grant and every break.

#include "kernel/little_store.hpp"

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class TokenTest : public KernelTest {
protected:
    [[nodiscard]] std::uint64_t clock() const { return static_cast<std::uint64_t>(now().time_since_epoch().count()); }
    std::uint64_t fresh_token() { return token_of(by_alice(name_, 50ms)).value; }
};

TEST_F(TokenTest, TheFirstOneIsTheClock) { EXPECT_EQ(fresh_token(), clock()); }

TEST_F(TokenTest, FollowsTheClockWhenTimePasses) {
    fresh_token();
    elapse(1h);
    EXPECT_EQ(fresh_token(), clock());
}

TEST_F(TokenTest, RisesByOneWhenTheClockStandsStill) {
    Acquire request = by_alice(name_);
    const std::uint64_t first = token_of(request).value;
    for (std::uint64_t i = 1; i <= 1000; ++i) {
        granted(release(request));
        request.as = Credentials::random();
        ASSERT_EQ(token_of(request).value, first + i);
    }
}

TEST_F(TokenTest, RisesAlsoWhenTheClockGoesBack) {
    const Acquire alice = by_alice(name_);
    const std::uint64_t first = token_of(alice).value;
    granted(release(alice));
    elapse(-24h);
    EXPECT_EQ(fresh_token(), first + 1);
}

TEST_F(TokenTest, RisesOnAClockBefore1970) {
    elapse(-now().time_since_epoch() - 1h);
    EXPECT_EQ(fresh_token(), 1U);
    elapse(1s);
    EXPECT_EQ(fresh_token(), 2U);
}

TEST_F(TokenTest, IsKeptByRenewAndRelease) {
    const Acquire alice = by_alice(name_);
    const FencingToken token = token_of(alice);
    elapse(1s);
    EXPECT_EQ(granted(renewal(alice)).lock.token, token);
    EXPECT_EQ(granted(release(alice)).lock.token, token);
}

TEST_F(TokenTest, RisesWithEveryChangeOfHolderOnAStandingClock) {
    const Acquire alice = by_alice(name_);
    std::uint64_t last = token_of(alice).value;
    const Credentials bob = Credentials::random();
    EXPECT_EQ(token_of(Transfer{name_, alice.as, Holder{"bob", ""}, bob, ""}).value, ++last);

    const Ask ask{name_, Credentials::random(), Holder{"carol", ""}, "", lasting(1s), lasting(1s)};
    EXPECT_EQ(granted(ask).lock.token.value, last);
    EXPECT_EQ(token_of(Answer{name_, ask.as.lock_id, Verdict::approve, "root", "", {}}).value, ++last);

    EXPECT_EQ(granted(Break{name_, ask.as.lock_id, "root", ""}).lock.token.value, ++last);
    EXPECT_EQ(fresh_token(), ++last);
}

TEST_F(TokenTest, RisesWithAStealOnAClockThatIsBehindTheToken) {
    store_.shelf(name_).record.token = FencingToken{clock() + 1'000'000};
    const std::uint64_t first = fresh_token();
    EXPECT_EQ(first, clock() + 1'000'001);
    elapse(1s);
    EXPECT_EQ(fresh_token(), first + 1);
}

TEST_F(TokenTest, EveryLockCountsForItself) {
    store_.shelf(lock("other")).record.token = FencingToken{clock() + 1'000'000};
    EXPECT_EQ(fresh_token(), clock());
}

using TokenDeathTest = TokenTest;

TEST_F(TokenDeathTest, EndsTheProcessRatherThanLeaveTheExactRange) {
    store_.shelf(name_).record.token = FencingToken{FencingToken::limit - 1};
    EXPECT_DEATH(fresh_token(), "");
}

}  // namespace
}  // namespace holdfast::tests
