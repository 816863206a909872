// Goal: a crowd that waits for one lock in a server does not run to it at every change: only the next waiter is woken.
// Method: as in tests/client/many_waiters_test.cpp, with fewer, because each of them is a connection.

#include "support/crowd.hpp"

#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/run_settings.hpp"
#include "support/server_place.hpp"

#include <gtest/gtest.h>

namespace holdfast::tests {
namespace {

class Crowd : public testing::TestWithParam<std::string> {};

TEST_P(Crowd, CostsAtMostTwoWakeUpsForEachGrant) {
    const ServerPlace place(GetParam());
    expect_few_wake_ups(*must(open_store(place.url())), scaled(100), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Servers, Crowd, testing::ValuesIn(network_kinds()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
