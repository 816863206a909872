// How long a lock is usually held, read from a store.

#include "client/usual_hold.hpp"

#include "client/faulty_store.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class UsualHoldOfAStore : public testing::Test {
protected:
    /// Holds of one minute each, renewed so often.
    void hold(int times, int renewals = 0) {
        for (int i = 0; i < times; ++i) {
            const Acquire alice = by_alice(name_, 24h);
            std::vector<Request> requests{alice};
            for (int each = 0; each < renewals; ++each) requests.emplace_back(renewal(alice));
            for (const Reply& reply : must(inner_->apply(requests, Deadline::never()))) ASSERT_THAT(reply, Granted());
            clock_.advance(1min);
            ASSERT_THAT(inner_->apply_one(release(alice), Deadline::never()), Granted());
        }
    }
    [[nodiscard]] std::optional<UsualHold> usual() {
        return client::usual_hold(store_, must(inner_->inspect(name_, Deadline::never())), Deadline::never());
    }

    ManualClock clock_;
    std::unique_ptr<Store> inner_ = must(open_store("memory:", clock_));
    FaultyStore store_{*inner_};
    const LockName name_ = lock("deploy/web");
};

TEST_F(UsualHoldOfAStore, IsThatOfItsLastHolds) {
    EXPECT_FALSE(usual());
    hold(5);
    ASSERT_TRUE(usual());
    EXPECT_EQ(usual()->p50(), 1min);
    hold(100);
    EXPECT_EQ(usual()->samples(), UsualHold::most_samples);
}

TEST_F(UsualHoldOfAStore, ReadsPastRenewals) {
    hold(60, 40);
    EXPECT_EQ(usual()->samples(), UsualHold::most_samples);
}

TEST_F(UsualHoldOfAStore, ReadsNoMoreThanTheNewestPartOfALongLog) {
    hold(5);
    hold(1, 3000);
    EXPECT_FALSE(usual());
}

TEST_F(UsualHoldOfAStore, IsAbsentWhereTheLogCannotBeRead) {
    hold(5);
    const LockStatus status = must(inner_->inspect(name_, Deadline::never()));
    store_.cut();
    EXPECT_FALSE(client::usual_hold(store_, status, Deadline::never()));
}

TEST_F(UsualHoldOfAStore, GoesNoFurtherBackThanTheLogDoes) {
    hold(7);
    ASSERT_THAT(inner_->apply_one(Prune{name_, 3, "ops", ""}, Deadline::never()), Granted());
    ASSERT_TRUE(usual());
    EXPECT_EQ(usual()->samples(), 5U) << "the first hold and the beginning of the second are gone";
}

}  // namespace
}  // namespace holdfast::tests
