// Goal: a crowd that waits for one lock in a server does not run to it at every change: only who is next is woken.
// Method: as in tests/client/many_waiters_test.cpp, a store that counts how often its waiters came back from sleeping.
// No lease and no ticket runs out meanwhile, so the count does not depend on how fast this runs.

#include "client/waiter.hpp"
#include "holdfast/open.hpp"
#include "support/counting_store.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"
#include "support/server_place.hpp"
#include "support/servers/kinds.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class Crowd : public testing::TestWithParam<std::string> {
protected:
    static Deadline patient() { return Deadline::never(); }

    const ServerPlace place_{GetParam(), shared_server_port(GetParam())};
};

TEST_P(Crowd, CostsAtMostTwoWakeUpsForEachGrant) {
    const int count = scaled(100);
    const auto inner = must(open_store(place_.url()));
    CountingStore store(*inner);
    const LockName name = lock("deploy/web");
    const Acquire first = by_alice(name, 1h);
    must(store.apply_one(first, patient()));

    std::atomic<int> served = 0;
    std::vector<std::jthread> waiters;
    for (int i = 0; i < count; ++i)
        waiters.emplace_back([&] {
            const Acquire wanted = queued(by("waiter", name, 1h), 1h);
            const auto granted = client::acquire_in_turn(store, wanted, host_clock(), {});
            ASSERT_THAT(granted, Granted());
            ++served;
            must(store.apply_one(release(wanted), patient()));
        });
    for (int asleep = store.asleep; asleep < count; asleep = store.asleep) store.asleep.wait(asleep);
    EXPECT_EQ(must(store.inspect(name, patient())).waiters, static_cast<std::uint64_t>(count));
    EXPECT_EQ(store.woken, 0);

    must(store.apply_one(release(first), patient()));
    waiters.clear();
    EXPECT_EQ(served, count);
    EXPECT_LE(store.woken, 2 * count);
    fmt::print("{}: {} waiters came back {} times\n", GetParam(), count, store.woken.load());
}

INSTANTIATE_TEST_SUITE_P(Servers, Crowd, testing::Values("redis", "etcd"), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
