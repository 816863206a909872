// Goal: a lease lasts its ttl, although the clock that judges it has whole seconds only.
// Method: real time on a real node, without a margin; leases begin at all moments of a second.

#include "holdfast/open.hpp"
#include "support/etcd_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/servers/kinds.hpp"
#include "support/servers/proxy.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

Deadline patient() { return Deadline::in(host_clock(), 30s); }

class EtcdClock : public testing::Test {
protected:
    ~EtcdClock() override { EtcdByHand(port_).remove_all(prefix_ + "/"); }
    [[nodiscard]] std::unique_ptr<Store> open(std::string_view margin) const { return open(margin, port_); }
    [[nodiscard]] std::unique_ptr<Store> open(std::string_view margin, std::uint16_t port) const {
        return must(open_store(fmt::format("etcd://127.0.0.1:{}/{}?clock_margin={}", port, prefix_, margin)));
    }

    const std::uint16_t port_ = shared_server_port("etcd");
    const std::string prefix_ = "clock-" + LockId::random().text();
};

struct Held {
    Acquire lease;
    Boottime sent_at;
    bool over = false;
};

/// Twenty leases, begun within a second.
std::vector<Held> begin_all(Store& store, std::chrono::milliseconds ttl) {
    std::vector<Held> all;
    for (int i = 0; i < 20; ++i) {
        Held held{by_alice(lock(fmt::format("{}", i)), ttl), host_clock().boottime()};
        const Outcome granted = must(store.apply_one(held.lease, patient()));
        EXPECT_EQ(granted.lock.lease->expires_at - granted.lock.lease->renewed_at, ttl) << "what a holder counts on";
        all.push_back(std::move(held));
        std::this_thread::sleep_for(50ms);
    }
    return all;
}

// etcd's own leases last two seconds or more, whatever was asked for, and the clock that judges ours cuts off up to a
// second. Neither may show: a holder counts on its ttl, and nobody waits for longer than that and the second.
TEST_F(EtcdClock, NobodyTakesALeaseBeforeItsTtlHasPassed) {
    const auto store = open("0s");
    constexpr auto ttl = 700ms;
    auto all = begin_all(*store, ttl);
    std::size_t over = 0;
    for (const auto until = patient(); over < all.size() && !until.passed(host_clock());)
        for (Held& held : all) {
            if (held.over) continue;
            const Reply stolen = store->apply_one(by_bob(held.lease.name), patient());
            if (!stolen) continue;
            EXPECT_GE(host_clock().boottime() - held.sent_at, ttl);
            EXPECT_TRUE(stolen->stolen_from);
            held.over = true;
            ++over;
        }
    EXPECT_EQ(over, all.size());
}

TEST_F(EtcdClock, ALeaseCanBeRenewedUntilItsTtlHasPassed) {
    const auto store = open("0s");
    constexpr auto ttl = 1500ms;
    std::size_t in_time = 0;
    for (const Held& held : begin_all(*store, ttl)) {
        while (host_clock().boottime() - held.sent_at < ttl - 300ms) std::this_thread::sleep_for(5ms);
        const Boottime sent_at = host_clock().boottime();
        const Reply renewed = store->apply_one(renewal(held.lease), patient());
        // A pause of the test itself proves nothing.
        if (host_clock().boottime() - held.sent_at >= ttl) continue;
        ++in_time;
        EXPECT_THAT(renewed, Granted()) << (sent_at - held.sent_at).count() << " ms";
    }
    EXPECT_GT(in_time, 0U);
}

// What the clock showed seconds ago is good enough for a lease that has long to go. Where one may be over, it may have
// been set since.
TEST_F(EtcdClock, IsLookedAtWhereALeaseMayHaveEndedAndNotOtherwise) {
    Proxy proxy(port_);
    const auto store = open("1h", proxy.port());
    must(store->apply_one(by_alice(lock("long"), 1h), patient()));
    must(store->apply_one(by_alice(lock("short"), 100ms), patient()));
    const auto is_held = [&] { return must(store->inspect(lock("short"), patient())).state == LockState::held; };
    const auto ask = [&](std::string_view name) {
        return store->apply_one(by_bob(lock(name)), Deadline::in(host_clock(), 300ms));
    };
    for (const auto until = patient(); is_held();) ASSERT_FALSE(until.passed(host_clock()));
    // From now on nobody can look at it.
    proxy.misquote("GET /version", "GET?/version");
    const Boottime began = host_clock().boottime();
    const Reply refused = ask("long");
    // It was looked at when the other lease was seen to be over. A pause of the test itself proves nothing.
    if (host_clock().boottime() - began < 1s) {
        EXPECT_THAT(refused, RefusedWith(Errc::lock_conflict));
    }
    EXPECT_THAT(ask("short"), RefusedWith(Errc::store_unavailable));
    proxy.misquote("", "");
    EXPECT_THAT(ask("short"), RefusedWith(Errc::lock_conflict)) << "within the margin";
}

TEST_F(EtcdClock, NobodyTakesALeaseWithinTheMargin) {
    const auto store = open("2s");
    const Boottime sent_at = host_clock().boottime();
    must(store->apply_one(by_alice(lock("x"), 100ms), patient()));
    Reply stolen = fail(Errc::lock_conflict, "never asked");
    for (const auto until = patient(); !stolen && !until.passed(host_clock()); std::this_thread::sleep_for(20ms)) {
        stolen = store->apply_one(by_bob(lock("x")), patient());
        if (!stolen) {
            EXPECT_THAT(stolen, RefusedWith(Errc::lock_conflict));
        }
    }
    EXPECT_THAT(stolen, Granted());
    EXPECT_GE(host_clock().boottime() - sent_at, 2100ms);
}

}  // namespace
}  // namespace holdfast::tests
