// Goal: a long queue costs no more per grant than a short one: who is not first sleeps. Method: as many
// threads as a busy host has waiters, on one lock, and a store that counts how often they came back from
// sleeping. No lease and no ticket runs out meanwhile, so the count does not depend on how fast this runs.

#include "client/waiter.hpp"
#include "holdfast/open.hpp"
#include "support/counting_store.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"
#include "support/temp_folder.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <sys/resource.h>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

/// Every waiting thread has a bell open, and a shell's usual limit is 1,024 descriptors.
void allow_many_descriptors() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

class ManyWaiters : public testing::TestWithParam<std::string> {
protected:
    std::string url() const {
        return GetParam() == "memory" ? "memory:"
                                      : GetParam() + ":" + (folder_.path() / "store").string() + "?sync=off";
    }
    static Deadline patient() { return Deadline::never(); }

    TempFolder folder_;
};

TEST_P(ManyWaiters, CostAtMostTwoWakeUpsForEachGrant) {
    allow_many_descriptors();
    const int count = scaled(1000);
    const auto inner = must(open_store(url()));
    CountingStore store(*inner);
    const LockName name = lock("deploy/web");
    const Acquire first = by_alice(name, 1h);
    must(store.apply_one(first, patient()));

    std::atomic<int> inside = 0;
    std::atomic<int> served = 0;
    std::vector<std::jthread> waiters;
    for (int i = 0; i < count; ++i)
        waiters.emplace_back([&] {
            const Acquire wanted = queued(by("waiter", name, 1h), 1h);
            const auto granted = client::acquire_in_turn(store, wanted, host_clock(), {});
            ASSERT_THAT(granted, Granted());
            EXPECT_EQ(++inside, 1);
            --inside;
            ++served;
            must(store.apply_one(release(wanted), patient()));
        });
    for (int asleep = store.asleep; asleep < count; asleep = store.asleep) store.asleep.wait(asleep);
    EXPECT_EQ(must(store.inspect(name, patient())).waiters, static_cast<std::uint64_t>(count));
    EXPECT_EQ(store.woken, 0);

    const auto start = std::chrono::steady_clock::now();
    must(store.apply_one(release(first), patient()));
    waiters.clear();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(served, count);
    EXPECT_LE(store.woken, 2 * count);
    std::printf("%s: %d waiters came back %d times, %.2f ms for each grant\n", GetParam().c_str(), count,
                store.woken.load(), took.count() / count);
}

INSTANTIATE_TEST_SUITE_P(Stores, ManyWaiters, testing::Values("memory", "file", "sqlite"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
