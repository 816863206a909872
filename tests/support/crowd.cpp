#include "support/crowd.hpp"

#include "client/waiter.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

/// A real store that counts the waits that begin and that end.
class CountingStore final : public Store {
public:
    explicit CountingStore(Store& inner) : Store(inner.clock()), inner_(inner) {}

    std::atomic<int> asleep = 0;  ///< How often anybody began to wait.
    std::atomic<int> woken = 0;

    Result<std::optional<HandedOn>> wait_for_change(const Watch& watch, Deadline deadline) override {
        ++asleep;
        asleep.notify_all();
        auto waited = inner_.wait_for_change(watch, deadline);
        ++woken;
        return waited;
    }
    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        return inner_.apply(requests, deadline);
    }
    Result<LockStatus> inspect(const LockName& name, Deadline deadline) override {
        return inner_.inspect(name, deadline);
    }
    Result<std::vector<LockStatus>> list(const ListQuery& query, Deadline deadline) override {
        return inner_.list(query, deadline);
    }
    Result<std::vector<AuditEvent>> history(const HistoryQuery& query, Deadline deadline) override {
        return inner_.history(query, deadline);
    }
    Result<std::unique_ptr<Subscription>> subscribe(const Watch& watch, WatchFired fired) override {
        return inner_.subscribe(watch, std::move(fired));
    }
    StoreProperties properties() const override { return inner_.properties(); }
    Result<EventPage> events(const EventCursor& after, std::size_t limit, Deadline deadline) override {
        return inner_.events(after, limit, deadline);
    }
    Result<EventCursor> end_of_events(Deadline deadline) override { return inner_.end_of_events(deadline); }
    StoreInfo info() const override { return inner_.info(); }
    std::optional<StoreId> store_id() const override { return inner_.store_id(); }
    std::vector<Finding> examine(Deadline deadline) override { return inner_.examine(deadline); }

private:
    Store& inner_;
};

}  // namespace

void expect_few_wake_ups(Store& store, int count, std::string_view label) {
    const Deadline patient = Deadline::never();
    CountingStore counted(store);
    const LockName name = lock("deploy/web");
    const Acquire first = by_alice(name, 1h);
    must(counted.apply_one(first, patient));

    std::atomic<int> inside = 0;
    std::atomic<int> served = 0;
    std::vector<std::jthread> waiters;
    for (int i = 0; i < count; ++i)
        waiters.emplace_back([&] {
            const Acquire wanted = queued(by("waiter", name, 1h), 1h);
            const auto granted = client::acquire_in_turn(counted, wanted, host_clock(), {});
            ASSERT_THAT(granted, Granted());
            EXPECT_EQ(++inside, 1);
            --inside;
            ++served;
            must(counted.apply_one(release(wanted), patient));
        });
    for (int asleep = counted.asleep; asleep < count; asleep = counted.asleep) counted.asleep.wait(asleep);
    EXPECT_EQ(must(counted.inspect(name, patient)).waiters, static_cast<std::uint64_t>(count));
    EXPECT_EQ(counted.woken, 0);

    must(counted.apply_one(release(first), patient));
    waiters.clear();
    EXPECT_EQ(served, count);
    EXPECT_LE(counted.woken, 2 * count);
    fmt::print("{}: {} waiters came back {} times\n", label, count, counted.woken.load());
}

}  // namespace holdfast::tests
