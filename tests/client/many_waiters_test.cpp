// Goal: a long queue costs no more per grant than a short one: a waiter that is not first sleeps. Method: as many
// threads as a busy host has waiters, on one lock, and a store that counts how often they came back from sleeping.

#include "holdfast/open.hpp"
#include "support/crowd.hpp"
#include "support/matchers.hpp"
#include "support/run_settings.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

namespace holdfast::tests {
namespace {

/// Every waiting thread has a bell open, and a shell's usual limit is 1,024 descriptors.
void allow_many_descriptors() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

class ManyWaiters : public testing::TestWithParam<std::string> {};

TEST_P(ManyWaiters, CostAtMostTwoWakeUpsForEachGrant) {
    allow_many_descriptors();
    const TempFolder folder;
    const std::string url =
        GetParam() == "memory" ? "memory:" : GetParam() + ":" + (folder.path() / "store").string() + "?sync=off";
    expect_few_wake_ups(*must(open_store(url)), scaled(1000), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Stores, ManyWaiters, testing::Values("memory", "file", "sqlite"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
