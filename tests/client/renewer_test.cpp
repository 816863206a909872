// Goal: all holds on a store share a few threads and a few calls, and nothing that happens to one of them, or blocks
// in its code, touches another. Method: the memory store behind a line that hangs, fails or counts; a clock that is
// moved by hand where calls are counted.

#include "client/renewer.hpp"

#include "client/event_log.hpp"
#include "client/faulty_store.hpp"
#include "client/watching.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <latch>
#include <ranges>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using enum HoldEventKind;

/// Blocks all callers until it is destroyed.
class Gate {
public:
    ~Gate() { open(); }
    void wait() {
        arrived_ = true;
        open_.wait();
    }
    void open() {
        if (!is_open_.exchange(true)) open_.count_down();
    }
    [[nodiscard]] bool has_visitor() const { return arrived_; }

private:
    std::latch open_{1};
    std::atomic<bool> is_open_ = false;
    std::atomic<bool> arrived_ = false;
};

class RenewerTest : public testing::Test {
protected:
    // The holds end last of all, when nothing blocks any more.
    ~RenewerTest() override {
        gate_.open();
        store_.let_go();
        holds_.clear();
    }

    HoldOptions lease(std::chrono::milliseconds ttl) {
        HoldOptions options;
        options.holder = {"alice", ""};
        options.ttl = lasting(ttl);
        options.observer = log_.observer();
        return options;
    }
    Hold& take(std::string_view name, const HoldOptions& options) {
        return holds_.emplace_back(must(hold(store_, lock(name), options)));
    }
    /// Several holds without an observer.
    void take(int count, HoldOptions options) {
        options.observer = nullptr;
        for (int i = 0; i < count; ++i) take(fmt::format("job/{:04}", i), options);
    }
    bool all_renewed(std::uint64_t times) const {
        return std::ranges::all_of(holds_, [&](const Hold& each) { return each.lease().renew_seq >= times; });
    }
    Deadline soon() const { return Deadline::in(host_clock(), 5s); }
    void break_lock(const Hold& held) {
        must(inner_->apply_one(Break{held.name(), held.credentials().lock_id, "operator", ""}, soon()));
    }

    std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    EventLog log_;
    EventLog other_log_;
    Gate gate_;
    std::list<Hold> holds_;
};

/// Time passes only when the test says so, and all renewals that it makes due are due at once.
class TimedRenewerTest : public RenewerTest {
protected:
    TimedRenewerTest() {
        inner_ = must(open_store("memory:", clock_));
        store_.replace_by(*inner_);
    }
    ~TimedRenewerTest() override { holds_.clear(); }

    HoldOptions timed_lease() {
        HoldOptions options = lease(900ms);
        options.clock = &clock_;
        return options;
    }

    ManualClock clock_;
};

TEST_F(TimedRenewerTest, AThousandHoldsNeedAHandfulOfThreadsAndOfCalls) {
    const auto threads_before = threads_of_this_process();
    take(1000, timed_lease());
    for (std::uint64_t round = 1; round <= 3; ++round) {
        const int calls_before = store_.applied();
        clock_.advance(300ms);
        ASSERT_TRUE(becomes_true([&] { return all_renewed(round); }));
        EXPECT_LE(store_.applied() - calls_before, 4) << "a thousand are four of the largest batches";
    }
    // The timekeeper, the hub, and a worker: where calls take long, one for each of the four batches.
    EXPECT_LE(threads_of_this_process() - threads_before, 6);
}

TEST_F(TimedRenewerTest, HoldsThatWereTakenAtDifferentTimesComeToBeRenewedTogether) {
    take("a", timed_lease());
    clock_.advance(20ms);
    take("b", timed_lease());
    const int before = store_.applied();
    clock_.advance(285ms);  // The second is due in 15 ms.
    ASSERT_TRUE(becomes_true([&] { return all_renewed(1); }));
    EXPECT_EQ(store_.applied(), before + 1);
}

TEST_F(TimedRenewerTest, AnErrorOfABatchExtendsNoHoldInIt) {
    take(3, timed_lease());
    const Boottime deadline = holds_.front().deadline();
    store_.cut();
    clock_.advance(300ms);
    // Either it has heard of the failure, or it believes that there was none.
    for (const Hold& held : holds_) {
        EXPECT_TRUE(becomes_true([&] {
            return held.deadline() != deadline || held.reason_of_expiry().message.contains("the line is cut");
        }));
        EXPECT_EQ(held.deadline(), deadline);
    }
}

TEST_F(RenewerTest, TheThreadsEndWithTheLastHold) {
    const auto before = threads_of_this_process();
    Hold& first = take("a", lease(600ms));
    Hold& second = take("b", lease(600ms));
    log_.await(renewed, 4);
    EXPECT_THAT(first.release(), Granted());
    EXPECT_GT(threads_of_this_process(), before);
    EXPECT_THAT(second.release(), Granted());
    // The system forgets a thread a little after it was joined.
    EXPECT_TRUE(becomes_true([&] { return threads_of_this_process() == before; }));
}

TEST_F(RenewerTest, ABlockedObserverDelaysNeitherRenewalNorLossOfAnotherHold) {
    auto options = lease(900ms);
    options.observer = [&](const HoldEvent& event) {
        if (event.kind == renewed) gate_.wait();
    };
    const Hold& blocked = take("a", options);
    options.observer = other_log_.observer();
    const Hold& other = take("b", options);
    ASSERT_TRUE(becomes_true([&] { return gate_.has_visitor(); }));
    other_log_.await(renewed, 4);  // More than its ttl.
    EXPECT_FALSE(other.loss());
    EXPECT_FALSE(blocked.loss()) << "its own observer kept it from being renewed";
    store_.cut();
    other_log_.await(lost);
    EXPECT_TRUE(becomes_true([&] { return blocked.lost().stop_requested(); }))
        << "its own observer kept its loss from being announced";
}

TEST_F(RenewerTest, ABlockedStopCallbackDelaysNoLossOfAnotherHold) {
    const Hold& blocked = take("a", lease(300ms));
    auto options = lease(1500ms);
    options.observer = other_log_.observer();
    take("b", options);
    const std::stop_callback blocks(blocked.lost(), [&] { gate_.wait(); });
    break_lock(blocked);
    ASSERT_TRUE(becomes_true([&] { return gate_.has_visitor(); }));
    store_.cut();
    other_log_.await(lost);
    gate_.open();
}

TEST_F(RenewerTest, ABatchThatNeverReturnsLosesNoHoldInIt) {
    take(20, lease(1500ms));
    store_.hang(1);
    ASSERT_TRUE(becomes_true([&] { return all_renewed(2); }));
    for (const Hold& held : holds_) EXPECT_FALSE(held.loss());
    EXPECT_TRUE(holds_.front().is_stuck());
}

// Its row is locked, or its file: every call that contains it fails.
TEST_F(RenewerTest, OneLockThatFailsItsCallsLosesNoOtherHold) {
    take(40, lease(3s));
    const Hold& failing = take("bad", lease(3s));
    store_.fail_calls_with(failing.name());
    log_.await(lost);
    ASSERT_TRUE(becomes_true([&] {
        return std::ranges::all_of(holds_,
                                   [&](const Hold& each) { return &each == &failing || each.lease().renew_seq > 2; });
    }));
    for (const Hold& held : holds_) EXPECT_EQ(held.loss().has_value(), &held == &failing) << held.name().text();
}

TEST_F(RenewerTest, TheLossOfOneInABatchIsNotThatOfAnother) {
    take(10, lease(900ms));
    const Hold& broken_one = take("gone", lease(900ms));
    break_lock(broken_one);
    log_.await(lost);
    ASSERT_TRUE(becomes_true([&] {
        return std::ranges::all_of(
            holds_, [&](const Hold& each) { return &each == &broken_one || each.lease().renew_seq > 2; });
    }));
    EXPECT_EQ(std::ranges::count_if(holds_, [](const Hold& each) { return each.loss().has_value(); }), 1);
}

TEST_F(RenewerTest, TwoStoresDoNotWaitForEachOther) {
    const auto other_inner = must(open_store("memory:"));
    FaultyStore other_store(*other_inner);
    take("a", lease(900ms));
    auto options = lease(900ms);
    options.observer = other_log_.observer();
    const Hold other = must(hold(other_store, lock("a"), options));
    store_.hang(1000);
    log_.await(lost);
    other_log_.await(renewed, 4);
    EXPECT_FALSE(other.loss());
}

TEST_F(RenewerTest, ReleasingOneHoldOfABatchThatIsUnderWayLeavesTheOtherRenewed) {
    Hold& released = take("a", lease(900ms));
    auto options = lease(900ms);
    options.observer = other_log_.observer();
    const Hold& other = take("b", options);
    store_.hang(1);
    const int before = store_.applied();
    ASSERT_TRUE(becomes_true([&] { return store_.applied() > before; }));
    EXPECT_THAT(released.release(), Granted());
    EXPECT_EQ(must(inner_->inspect(lock("a"), soon())).state, LockState::free);
    other_log_.await(renewed, 2);
    EXPECT_FALSE(other.loss());
}

TEST_F(RenewerTest, AnObserverMayReleaseAnotherHold) {
    Hold& released = take("b", lease(20s));
    auto options = lease(600ms);
    std::atomic<bool> is_asked = false;
    std::atomic<bool> is_released = false;
    options.observer = [&](const HoldEvent& event) {
        if (event.kind != renewed || is_asked.exchange(true)) return;
        EXPECT_THAT(released.release(), Granted());
        is_released = true;
    };
    take("a", options);
    ASSERT_TRUE(becomes_true([&] { return is_released.load(); }));
    EXPECT_EQ(must(inner_->inspect(lock("b"), soon())).state, LockState::free);
    // Before what the observer uses.
    holds_.clear();
}

}  // namespace
}  // namespace holdfast::tests
