// Goal: a call gets a connection that works, a broken one is never used again, and no call waits for another.
// Method: connections that the test breaks.
#include "stores/common/pool.hpp"

#include "support/matchers.hpp"

#include <gmock/gmock.h>

namespace holdfast::stores {
namespace {

using namespace std::chrono_literals;

struct FakeConnection {
    int number = 0;
    bool usable = true;
    bool alive = true;

    [[nodiscard]] bool is_usable() const { return usable; }
    [[nodiscard]] bool is_alive() const { return alive; }
};

class ConnectionPool : public testing::Test {
protected:
    Result<int> number_of_taken() {
        const auto connection = pool_.take(budget_);
        if (!connection) return std::unexpected(connection.error());
        return (*connection)->number;
    }

    int opened_ = 0;
    bool is_away_ = false;
    const base::CallBudget budget_{10s};
    Pool<FakeConnection> pool_{[this](const base::CallBudget&) -> Result<std::unique_ptr<FakeConnection>> {
        if (is_away_) return fail(Errc::store_unavailable, "the server is away");
        return std::make_unique<FakeConnection>(FakeConnection{.number = ++opened_});
    }};
};

TEST_F(ConnectionPool, GivesAConnectionBackForTheNextCall) {
    EXPECT_EQ(tests::must(number_of_taken()), 1);
    EXPECT_EQ(tests::must(number_of_taken()), 1);
    EXPECT_TRUE(tests::must(pool_.take(budget_)).was_idle());
}

TEST_F(ConnectionPool, OpensAnotherForACallThatIsUnderWay) {
    const auto first = tests::must(pool_.take(budget_));
    EXPECT_FALSE(first.was_idle());
    EXPECT_EQ(tests::must(number_of_taken()), 2);
}

TEST_F(ConnectionPool, NeverLendsABrokenConnectionAgain) {
    tests::must(pool_.take(budget_))->usable = false;
    EXPECT_EQ(tests::must(number_of_taken()), 2);
}

TEST_F(ConnectionPool, PassesOverConnectionsThatTheServerHasClosed) {
    {
        const auto first = tests::must(pool_.take(budget_));
        const auto second = tests::must(pool_.take(budget_));
        first->alive = false;
        second->alive = false;
    }
    EXPECT_EQ(tests::must(number_of_taken()), 3);
}

TEST_F(ConnectionPool, ClosesTheIdleOnesForACallThatWantsAFreshOne) {
    EXPECT_EQ(tests::must(number_of_taken()), 1);
    {
        const auto fresh = tests::must(pool_.take_fresh(budget_));
        EXPECT_EQ(fresh->number, 2);
        EXPECT_FALSE(fresh.was_idle());
    }
    EXPECT_EQ(tests::must(number_of_taken()), 2) << "the first one is closed";
}

// After a crowd has gone, all its connections would be the server's burden until the process ends.
TEST_F(ConnectionPool, KeepsSomeOfManyConnectionsAndNotAll) {
    constexpr int crowd = 40;
    {
        std::vector<Pool<FakeConnection>::Borrowed> taken;
        for (int i = 0; i < crowd; ++i) taken.push_back(tests::must(pool_.take(budget_)));
    }
    std::vector<Pool<FakeConnection>::Borrowed> taken;
    int kept = 0;
    for (int i = 0; i < crowd; ++i) {
        taken.push_back(tests::must(pool_.take(budget_)));
        kept += taken.back().was_idle() ? 1 : 0;
    }
    EXPECT_EQ(kept, 32);
}

TEST_F(ConnectionPool, SaysWhyAServerIsNotReachedAndForgetsItWhenItIs) {
    is_away_ = true;
    EXPECT_THAT(number_of_taken(), tests::RefusedWith(Errc::store_unavailable));
    is_away_ = false;
    EXPECT_EQ(tests::must(number_of_taken()), 1);
}

TEST(CallBudget, EndsWithTheCallersDeadline) {
    ManualClock clock;
    const base::CallBudget budget(clock, Deadline::in(clock, 5s));
    EXPECT_EQ(budget.left(), 5s);
    clock.advance(5s);
    EXPECT_TRUE(budget.over());
}

TEST(CallBudget, IsBoundedForCallersWithoutADeadline) {
    EXPECT_LE(base::CallBudget(host_clock(), Deadline::never()).left(), base::CallBudget::longest_silence);
    const ManualClock still;
    EXPECT_LE(base::CallBudget(still, Deadline::in(still, 1h), 30s).left(), 30s);
    EXPECT_TRUE(base::CallBudget(0ms).over());
}

}  // namespace
}  // namespace holdfast::stores
