// What a daemon does by itself, with one and with several of them on one store.
#include "server/upkeep.hpp"

#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <list>
#include <thread>

namespace holdfast::server {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using tests::lock;
using tests::must;

/// Looks until it is so, and for half a minute at most.
bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (std::chrono::steady_clock::now() < end) {
        if (condition()) return true;
        std::this_thread::sleep_for(5ms);
    }
    return false;
}

class UpkeepTest : public testing::Test {
protected:
    struct Daemon {
        DaemonMetrics metrics{"1", {}};
        std::optional<Upkeep> upkeep{};
    };
    Daemon& start(UpkeepOptions options) {
        options.sweep_every = 5ms;
        Daemon& daemon = daemons_.emplace_back();
        daemon.upkeep.emplace(*store_, daemon.metrics, log_, options);
        return daemon;
    }
    [[nodiscard]] std::size_t count(const LockName& name, EventKind kind) {
        const auto events = must(store_->history({.name = name}, Deadline::never()));
        return static_cast<std::size_t>(std::ranges::count(events, kind, &AuditEvent::kind));
    }

    ManualClock clock_;
    std::unique_ptr<Store> store_ = must(open_store("memory:", clock_));
    Log log_{clock_, [](std::string_view) {}};
    std::list<Daemon> daemons_{};
    const LockName name_ = lock("a");
};

TEST_F(UpkeepTest, SeveralDaemonsAnnounceEachLeaseThatRanOutOnce) {
    for (int i = 0; i < 3; ++i) start({.keep = 0ms});
    constexpr int locks = 100;
    for (int i = 0; i < locks; ++i)
        ASSERT_TRUE(store_->apply_one(tests::by_alice(lock("l" + std::to_string(i)), 10s), Deadline::never()));
    clock_.advance(10s);
    const auto announced = [&] {
        std::size_t events = 0;
        for (int i = 0; i < locks; ++i) events += count(lock("l" + std::to_string(i)), EventKind::expired);
        return events;
    };
    EXPECT_TRUE(eventually([&] { return announced() >= locks; }));
    daemons_.clear();
    EXPECT_EQ(announced(), locks);
}

TEST_F(UpkeepTest, TheFiguresFollowTheStore) {
    Daemon& daemon = start({.keep = 0ms});
    ASSERT_TRUE(eventually([&] { return daemon.metrics.text().find("holdfast_store_up 1\n") != std::string::npos; }));
    ASSERT_TRUE(store_->apply_one(tests::by_alice(name_, 10s), Deadline::never()));
    clock_.advance(10s);
    EXPECT_TRUE(eventually([&] {
        const std::string text = daemon.metrics.text();
        return text.find("holdfast_losses_total{cause=\"expired\"} 1\n") != std::string::npos &&
               text.find("holdfast_ended_leases_total 1\n") != std::string::npos &&
               text.find("holdfast_locks{state=\"expired\"} 1\n") != std::string::npos;
    })) << daemon.metrics.text();
}

TEST_F(UpkeepTest, RemovesEventsThatAreOlderThanTheTimeToKeepAndNamesItself) {
    const Acquire alice = tests::by_alice(name_, 1h);
    ASSERT_TRUE(store_->apply_one(alice, Deadline::never()));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(store_->apply_one(tests::renewal(alice), Deadline::never()));
    ASSERT_TRUE(store_->apply_one(tests::release(alice), Deadline::never()));
    clock_.advance(std::chrono::days{91});
    start({.prune_after = 1ms, .prune_every = 5ms, .actor = "serve@host"});
    EXPECT_TRUE(eventually([&] { return count(name_, EventKind::pruned) == 1; }));
    daemons_.clear();
    const auto events = must(store_->history({.name = name_}, Deadline::never()));
    EXPECT_EQ(events.back().actor, "serve@host");
    EXPECT_TRUE(verify_chain(events, must(store_->inspect(name_, Deadline::never()))));
}

TEST_F(UpkeepTest, EndsAtOnceInTheMiddleOfAPause) {
    Daemon& daemon = start({.prune_after = 24h});
    daemon.upkeep.reset();
    SUCCEED();
}

}  // namespace
}  // namespace holdfast::server
