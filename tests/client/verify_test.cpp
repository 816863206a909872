// The audit log is checked while others write to it.

#include "client/verify.hpp"

#include "client/faulty_store.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class VerifyTest : public testing::Test {
protected:
    void SetUp() override { must(inner_->apply_one(alice_, Deadline::never())); }
    void renew() { must(inner_->apply_one(renewal(alice_), Deadline::never())); }
    Result<client::Verified> verify() { return client::verify(store_, std::nullopt, clock_); }

    ManualClock clock_;
    std::unique_ptr<Store> inner_ = must(open_store("memory:", clock_));
    FaultyStore store_{*inner_};
    const LockName name_ = lock("deploy/web");
    const Acquire alice_ = by_alice(name_, 24h);
};

TEST_F(VerifyTest, ALockThatIsNeverQuietIsIntact) {
    store_.before_looks([&] { renew(); });
    const auto verified = must(verify());
    EXPECT_EQ(verified.locks, 1U);
    EXPECT_GE(verified.events, 2U);
}

TEST_F(VerifyTest, ALogThatIsPrunedBetweenTwoLooksIsIntact) {
    for (int i = 0; i < 10; ++i) renew();
    int looks = 0;
    store_.before_looks([&] {
        // After the lock was read, and before its log is.
        if (++looks == 2) must(inner_->apply_one(Prune{name_, 5, "cron", ""}, Deadline::never()));
    });
    EXPECT_EQ(must(verify()).events, 7U);
}

TEST_F(VerifyTest, ALogThatIsPrunedAtEveryLookIsNotCalledBroken) {
    for (int i = 0; i < 100; ++i) renew();
    std::uint64_t through = 0;
    store_.before_looks([&] { must(inner_->apply_one(Prune{name_, ++through, "cron", ""}, Deadline::never())); });
    EXPECT_THAT(verify(), RefusedWith(Errc::store_unavailable));
}

TEST_F(VerifyTest, ALockThatIsMadeMeanwhileIsIntact) {
    int looks = 0;
    store_.before_looks(
        [&] { must(inner_->apply_one(by_bob(lock("new/" + std::to_string(++looks))), Deadline::never())); });
    EXPECT_EQ(must(verify()).locks, 1U);
    EXPECT_EQ(must(client::verify(store_, lock("new/1000"), clock_)).events, 0U);
}

}  // namespace
}  // namespace holdfast::tests
