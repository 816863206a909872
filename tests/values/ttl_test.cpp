#include "support/matchers.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using tests::RefusedWith;

TEST(TtlTest, LastsFrom50MillisecondsTo366Days) {
    EXPECT_EQ(tests::must(Ttl::of(50ms)).time(), 50ms);
    EXPECT_EQ(tests::must(Ttl::of(24h * 366)).time(), 24h * 366);
    for (const milliseconds time :
         {49ms, 0ms, -1ms, milliseconds{24h * 366} + 1ms, milliseconds::max(), milliseconds::min()})
        EXPECT_THAT(Ttl::of(time), RefusedWith(Errc::usage)) << time.count();
}

}  // namespace
}  // namespace holdfast
