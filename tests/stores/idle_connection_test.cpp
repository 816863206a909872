// Goal: a connection that was reset while idle is replaced, and the next caller notices nothing. Firewalls and load
// balancers forget connections that idle, and so do servers. Method: a proxy resets all of them between two calls, so
// that already the first thing that is said on one fails.
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/server_place.hpp"
#include "support/servers/proxy.hpp"

#include <gmock/gmock.h>

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class IdleConnection : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] static Deadline soon() { return Deadline::in(host_clock(), 20s); }

    const ServerPlace place_{GetParam()};
    Proxy proxy_{place_.port()};
    const std::unique_ptr<Store> store_ = must(open_store(place_.url(proxy_.port())));
};

TEST_P(IdleConnection, ThatWasResetIsReplacedUnnoticed) {
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store_->apply_one(alice, soon()));
    for (std::uint64_t round = 1; round <= 5; ++round) {
        proxy_.reset();
        EXPECT_THAT(store_->apply_one(renewal(alice), soon()), Granted());
        proxy_.reset();
        EXPECT_EQ(must(store_->inspect(lock("x"), soon())).seq, 1 + round) << "and it was done once";
    }
}

// What would have woken a waiter is lost with its connection. It must look by itself then.
TEST_P(IdleConnection, ThatBreaksUnderAWaiterCostsItNoTurn) {
    const auto direct = must(open_store(place_.url()));
    const Acquire alice = by_alice(lock("x"), 1h);
    must(direct->apply_one(alice, soon()));
    const Acquire bob = queued(by_bob(lock("x"), 1h), 5min);
    EXPECT_THAT(store_->apply_one(bob, soon()), RefusedWith(Errc::lock_conflict));
    const std::uint64_t before = proxy_.messages();
    std::jthread waiter([&] {
        const Deadline end = soon();
        while (!end.passed(host_clock())) {
            static_cast<void>(store_->wait_for_change({.name = lock("x"), .ticket = bob.as.lock_id}, end));
            if (store_->apply_one(bob, end)) return;
        }
        ADD_FAILURE() << "its turn never came";
    });
    // It has looked, and sleeps or is about to. A daemon is asked once, and does both.
    const std::uint64_t messages = GetParam() == "http" ? 1 : 2;
    const Deadline end = soon();
    while (proxy_.messages() < before + messages && !end.passed(host_clock())) std::this_thread::yield();
    proxy_.cut();
    must(direct->apply_one(release(alice), soon()));
    waiter.join();
    EXPECT_EQ(must(direct->inspect(lock("x"), soon())).lease->lock_id, bob.as.lock_id);
}

INSTANTIATE_TEST_SUITE_P(Servers, IdleConnection, testing::ValuesIn(network_kinds()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
