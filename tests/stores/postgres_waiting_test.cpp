// Goal: a waiter is woken when its turn has come, at once, and costs the server nothing otherwise. Method: a real
// server, whose own view of its sessions shows which of them listen.
#include "stores/postgres_fixture.hpp"

#include <atomic>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class PostgresWaiting : public PostgresFixture {
protected:
    /// What the server calls the sessions of this test.
    [[nodiscard]] std::string named() const { return "application_name=" + schema_; }
    /// How many of them listen: such a session asks at once for what is waited for, and then says nothing more.
    [[nodiscard]] int listening() { return sessions_that_said("WITH clock % SELECT l.seq, l.lock_id IS NULL"); }
    /// Waits until one of them stops listening.
    [[nodiscard]] bool stops_listening(const std::string& words) {
        const Deadline end = soon();
        while (sessions_that_said(words) != 1 && !end.passed(host_clock())) std::this_thread::yield();
        return sessions_that_said(words) == 1;
    }
    /// How many of them said this last.
    [[nodiscard]] int sessions_that_said(const std::string& words) {
        return std::stoi(by_hand_("SELECT count(*) FROM pg_stat_activity WHERE application_name = '" + schema_ +
                                  "' AND query LIKE '" + words + "%'"));
    }
};

TEST_F(PostgresWaiting, AReleaseWakesTheFirstInLineLongBeforeItWouldLook) {
    const auto holder = open();
    const auto waiter = open(named());
    for (int round = 0; round < scaled(20); ++round) {
        const Acquire held = by_alice(lock("l"));
        must(holder->apply_one(held, soon()));
        const Acquire wanted = queued(by_bob(lock("l")));
        const Reply refused = waiter->apply_one(wanted, soon());
        ASSERT_THAT(refused, RefusedWith(Errc::lock_conflict));
        std::jthread releaser([&] {
            while (listening() == 0) std::this_thread::yield();
            EXPECT_THAT(holder->apply_one(release(held), soon()), Granted());
        });
        ASSERT_THAT(waiter->wait_for_change({lock("l"), refused.error().holder->seq, wanted.as.lock_id}, soon()),
                    Granted());
        EXPECT_THAT(waiter->apply_one(wanted, soon()), Granted());
        EXPECT_THAT(waiter->apply_one(release(wanted), soon()), Granted());
    }
}

TEST_F(PostgresWaiting, NobodyListensWhenNobodyWaits) {
    const auto store = open(named());
    must(store->apply_one(by_alice(lock("l")), soon()));
    const Acquire wanted = queued(by_bob(lock("l")));
    const Reply refused = store->apply_one(wanted, soon());
    for (int i = 0; i < 3; ++i)
        must(store->wait_for_change({lock("l"), refused.error().holder->seq, wanted.as.lock_id},
                                    Deadline::in(host_clock(), 20ms)));
    EXPECT_TRUE(stops_listening("UNLISTEN"));
    EXPECT_EQ(listening(), 0);
}

TEST_F(PostgresWaiting, AStopRequestEndsAWaitAtOnce) {
    const auto store = open(named());
    const std::uint64_t seq = must(store->apply_one(by_alice(lock("l")), soon())).lock.seq;
    const Acquire wanted = queued(by_bob(lock("l")));
    EXPECT_FALSE(store->apply_one(wanted, soon()));
    for (const bool in_line : {true, false}) {
        std::stop_source source;
        std::jthread stopper([&] { source.request_stop(); });
        Watch watch{.name = lock("l"), .seen_seq = seq, .stop = source.get_token()};
        if (in_line) watch.ticket = wanted.as.lock_id;
        EXPECT_THAT(store->wait_for_change(watch, Deadline::never()), Granted());
    }
}

TEST_F(PostgresWaiting, ManyWaitersShareOneConnection) {
    const auto store = open(named());
    const Acquire held = by_alice(lock("l"), 1h);
    must(store->apply_one(held, soon()));
    std::vector<Acquire> waiting;
    for (int i = 0; i < 8; ++i) waiting.push_back(queued(by("w" + std::to_string(i), lock("l"), 1h), 1h));
    std::uint64_t seq = 0;
    for (const Acquire& one : waiting) seq = store->apply_one(one, soon()).error().holder->seq;
    std::vector<int> order;
    std::mutex mutex;
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < waiting.size(); ++i)
            threads.emplace_back([&, i] {
                while (true) {
                    must(store->wait_for_change({lock("l"), seq, waiting[i].as.lock_id}, soon()));
                    const Reply reply = store->apply_one(waiting[i], soon());
                    if (!reply) continue;
                    {
                        const std::scoped_lock guard(mutex);
                        order.push_back(static_cast<int>(i));
                    }
                    EXPECT_THAT(store->apply_one(release(waiting[i]), soon()), Granted());
                    return;
                }
            });
        EXPECT_THAT(store->apply_one(release(held), soon()), Granted());
    }
    EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(PostgresWaiting, ManySubscriptionsNeedOneThreadAndTwoSessions) {
    const auto store = open(named());
    const Acquire held = by_alice(lock("l"), 1h);
    must(store->apply_one(held, soon()));
    const int count = scaled(1000);
    std::vector<Request> waiting;
    for (int i = 0; i < count; ++i) waiting.emplace_back(queued(by("w", lock("l"), 1h), 1h));
    for (const Reply& reply : must(store->apply(waiting, soon()))) EXPECT_FALSE(reply);
    const auto threads = [] {
        const std::filesystem::directory_iterator tasks("/proc/self/task");
        return std::distance(begin(tasks), end(tasks));
    };
    const auto before = threads();
    std::atomic<int> fired = 0;
    std::vector<std::unique_ptr<Subscription>> subscriptions;
    for (const Request& one : waiting) {
        const auto& acquire = std::get<Acquire>(one);
        subscriptions.push_back(must(store->subscribe({acquire.name, 1, acquire.as.lock_id}, [&](const auto& result) {
            EXPECT_TRUE(result && *result) << "the lock was handed over";
            ++fired;
            fired.notify_all();
        })));
    }
    while (listening() == 0) std::this_thread::yield();
    EXPECT_EQ(threads(), before + 1);
    EXPECT_LE(sessions_that_said(""), 2) << "one that listens, one that asks";
    must(store->apply_one(release(held), soon()));
    fired.wait(0);
    subscriptions.clear();
    EXPECT_EQ(fired, 1) << "only the first has the lock";
    EXPECT_TRUE(stops_listening("UNLISTEN *"));
}

TEST_F(PostgresWaiting, ASubscriptionWhoseLookFailsIsToldSo) {
    const auto store = open(named());
    must(store->apply_one(by_alice(lock("l"), 1h), soon()));
    by_hand_("DROP SCHEMA " + schema_ + " CASCADE; CREATE SCHEMA " + schema_ + "; CREATE TABLE " + schema_ +
             ".meta (id int)");
    for (const auto& ticket : {std::optional(LockId::random()), std::optional<LockId>()}) {
        const auto seen = store->wait_for_change({.name = lock("l"), .seen_seq = 1, .ticket = ticket}, soon());
        EXPECT_FALSE(seen);
    }
}

// All waiters of a store hear through one connection, and each is called by a name of its own.
TEST_F(PostgresWaiting, WhatOneWaiterIsToldEndsNoOtherWait) {
    const auto store = open(named());
    const auto stand_in_line = [&](const std::string& name) {
        must(store->apply_one(by_alice(lock(name), 1h), soon()));
        const Acquire bob = queued(by_bob(lock(name)), 1h);
        EXPECT_THAT(store->apply_one(bob, soon()), RefusedWith(Errc::lock_conflict));
        return Watch{.name = lock(name), .seen_seq = 1, .ticket = bob.as.lock_id};
    };
    const Watch told = stand_in_line("told");
    std::string channel = "holdfast_" + told.ticket->text();
    std::erase(channel, '-');
    std::stop_source enough;
    Watch other = stand_in_line("other");
    other.stop = enough.get_token();
    auto sleeps = std::async(std::launch::async, [&] { return store->wait_for_change(other, Deadline::never()); });
    while (listening() == 0) std::this_thread::yield();
    for (int round = 0; round < 20; ++round) {
        auto woken = std::async(std::launch::async, [&] { return store->wait_for_change(told, soon()); });
        // Until it listens, nobody hears it.
        while (woken.wait_for(1ms) != std::future_status::ready) by_hand_("NOTIFY " + channel);
        EXPECT_THAT(woken.get(), Granted());
    }
    EXPECT_EQ(sleeps.wait_for(0s), std::future_status::timeout) << "it was called by another's name";
    enough.request_stop();
    EXPECT_THAT(sleeps.get(), Granted());
}

}  // namespace
}  // namespace holdfast::tests
