// Goal: renewals leave in few calls, and none is failed by another that shares its call. Method: the pure function that
// splits them.

#include "client/renewal_batches.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

namespace holdfast::client {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::SizeIs;

class RenewalBatches : public testing::Test {
protected:
    void add(int count, std::chrono::milliseconds time, bool has_failed = false) {
        for (int i = 0; i < count; ++i) {
            ScheduledRenewal& renewal = renewals_.emplace_back();
            renewal.give_up_at = now_ + time;
            renewal.has_failed = has_failed;
        }
    }
    std::vector<RenewalBatch> split(std::size_t free_calls = 16) {
        RenewalBatch all;
        for (ScheduledRenewal& renewal : renewals_) all.push_back(&renewal);
        return split_into_batches(all, now_, free_calls);
    }

    const Boottime now_{1000s};
    std::list<ScheduledRenewal> renewals_;
};

TEST_F(RenewalBatches, OfOneKindLeaveInAsFewCallsAsTheLargestBatchAllows) {
    add(600, 10s);
    const auto batches = split();
    EXPECT_THAT(batches, SizeIs(3));
    EXPECT_THAT(batches, Each(SizeIs(testing::Le(largest_batch))));
}

TEST_F(RenewalBatches, LongLeaseIsNotHurriedByAShortOne) {
    add(1, 20s);
    add(1, 300ms);
    add(1, 500ms);
    const auto batches = split();
    ASSERT_THAT(batches, SizeIs(2));
    EXPECT_THAT(batches.front(), SizeIs(2));
    EXPECT_EQ(batches.back().front()->give_up_at, now_ + 20s);
}

TEST_F(RenewalBatches, RenewalsThatFailedTogetherAreSpreadOverTheFreeCalls) {
    add(40, 1s, true);
    const auto batches = split(8);
    EXPECT_THAT(batches, SizeIs(8));
    EXPECT_THAT(batches, Each(SizeIs(5)));
}

TEST_F(RenewalBatches, RenewalThatFailedSharesNoCallWithOneThatDidNot) {
    add(10, 1s);
    add(1, 1s, true);
    const auto batches = split();
    ASSERT_THAT(batches, SizeIs(2));
    EXPECT_THAT(batches.back(), SizeIs(1));
    EXPECT_TRUE(batches.back().front()->has_failed);
}

}  // namespace
}  // namespace holdfast::client
