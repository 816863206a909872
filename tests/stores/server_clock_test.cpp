// The clock of the server is moved by an hour, as an operator or NTP does. Put back: no live lease is taken early,
// and a lock whose holder died is not blocked for an hour. Put forward: leases end early, which no store can prevent,
// but tokens rise and the audit log shows the jump.
#include "client/waiter.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/server_place.hpp"
#include "support/servers/clock.hpp"
#include "support/servers/kinds.hpp"
#include "support/servers/proxy.hpp"

#include <gmock/gmock.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class ServerClockTest : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] static Deadline soon() { return Deadline::in(host_clock(), 30s); }

    ServerClock clock_;
    std::unique_ptr<Server> server_ = start_server(GetParam(), {.environment = clock_.environment()});
    const ServerPlace place_{GetParam(), server_->port()};
    std::unique_ptr<Store> store_ = must(open_store(place_.url()));
};

TEST_P(ServerClockTest, PutBackItNeitherEndsALeaseNorBlocksALock) {
    const Acquire dead = by_alice(lock("x"), 1s);
    const Boottime sent = host_clock().boottime();
    const FencingToken first = must(store_->apply_one(dead, soon())).lock.token;
    const Acquire live = by_carol(lock("y"), 1h);
    must(store_->apply_one(live, soon()));
    clock_.step(-1h);

    // A dead holder is replaced after a ttl or two; had the deadline not moved with the clock, after an hour.
    const auto bob = client::acquire_in_turn(*store_, by_bob(lock("x")), host_clock(), {.deadline = soon()});
    ASSERT_THAT(bob, Granted());
    EXPECT_GE(host_clock().boottime(), sent + 1s) << "and not before its lease was over";
    EXPECT_GT(bob->lock.token, first) << "although the clock that is part of it went back";
    EXPECT_THAT(store_->apply_one(by_bob(lock("y")), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(store_->apply_one(renewal(live), soon()), Granted());
}

TEST_P(ServerClockTest, PutBackItKeepsNoPlaceForAWaiterThatDied) {
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store_->apply_one(alice, soon()));
    EXPECT_THAT(store_->apply_one(queued(by_carol(lock("x")), 1s), soon()), RefusedWith(Errc::lock_conflict));
    clock_.step(-1h);
    must(store_->apply_one(release(alice), soon()));
    EXPECT_THAT(client::acquire_in_turn(*store_, by_bob(lock("x")), host_clock(), {.deadline = soon()}), Granted());
}

TEST_P(ServerClockTest, PutForwardItEndsLeasesVisibly) {
    const Acquire alice = by_alice(lock("x"), 10min);
    const FencingToken first = must(store_->apply_one(alice, soon())).lock.token;
    const Acquire dave = by("dave", lock("z"), 10min);
    must(store_->apply_one(dave, soon()));
    clock_.step(1h);
    EXPECT_THAT(store_->apply_one(renewal(dave), soon()), RefusedWith(Errc::lock_expired))
        << "what the store remembers of the clock does not count";
    const Outcome bob = must(store_->apply_one(by_bob(lock("x")), soon()));
    EXPECT_TRUE(bob.stolen_from);
    EXPECT_GT(bob.lock.token, first);
    EXPECT_THAT(store_->apply_one(renewal(alice), soon()), RefusedWith(Errc::lock_not_held));
    const auto events = must(store_->history({.name = lock("x")}, soon()));
    ASSERT_EQ(events.size(), 2U);
    EXPECT_GE(events[1].at - events[0].at, 1h) << "whoever reads the log sees the jump";
    EXPECT_THAT(verify_chain(events, must(store_->inspect(lock("x"), soon()))), Granted());

    // Two faults at once: the clock is put back while an answer is lost and all connections break. What a store guesses
    // of the clock is an hour wrong then, and so is what it remembers.
    Proxy proxy(server_->port());
    const auto behind = must(open_store(place_.url(proxy.port())));
    const Acquire carol = by_carol(lock("y"), 10min);
    must(behind->apply_one(carol, soon()));
    must(behind->apply_one(renewal(carol), soon()));
    proxy.arrange(1, Fate::lose_reply);
    clock_.step(-1h);
    Reply renewed = behind->apply_one(renewal(carol), soon());
    if (!renewed && renewed.error().code == Errc::outcome_unknown) renewed = behind->apply_one(renewal(carol), soon());
    EXPECT_THAT(renewed, Granted());
    EXPECT_THAT(store_->apply_one(by_bob(lock("y")), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(
        verify_chain(must(store_->history({.name = lock("y")}, soon())), must(store_->inspect(lock("y"), soon()))),
        Granted());
}

/// etcd is not among them: the shim does not reach a program in Go.
INSTANTIATE_TEST_SUITE_P(Servers, ServerClockTest, testing::Values("postgres", "mysql", "redis"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace holdfast::tests
