// Goal: load turns into larger batches, and neither a lock that is stuck nor a caller in a hurry harms the others.
// Method: a loop that the test turns by hand, and a store whose calls can be held up.
#include "client/batcher.hpp"

#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast::client {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using tests::lock;
using tests::must;

/// Work waits until the test runs it, and time does not pass.
class TurnedLoop final : public Loop {
public:
    void post(Work work) override {
        {
            const std::scoped_lock guard(mutex_);
            posted_.push_back(std::move(work));
        }
        changed_.notify_all();
    }
    Timer after(std::chrono::milliseconds /*time*/, Work work) override {
        auto timer = std::make_shared<Work>(std::move(work));
        timers_.push_back(timer);
        return timer;
    }

    /// Runs what is posted until `done`, for half a minute at most.
    template <class Done>
    [[nodiscard]] bool run_until(Done done) {
        const auto end = std::chrono::steady_clock::now() + 30s;
        while (!done()) {
            std::unique_lock guard(mutex_);
            if (!changed_.wait_until(guard, end, [&] { return !posted_.empty(); })) return false;
            Work work = std::move(posted_.front());
            posted_.pop_front();
            guard.unlock();
            work();
        }
        return true;
    }
    /// Every timer that is not cancelled.
    void let_time_pass() {
        for (const auto& weak : std::exchange(timers_, {}))
            if (const auto timer = weak.lock()) (*timer)();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work> posted_{};  ///< Guarded by mutex_.
    std::vector<std::weak_ptr<Work>> timers_{};
};

/// A real store. Calls with a request for the lock `held` wait until the test lets them go.
class HeldStore final : public Store {
public:
    explicit HeldStore(Store& inner) : Store(inner.clock()), inner_(inner) {}

    void hold(const char* name) {
        change([&] { held_ = lock(name); });
    }
    void let_go() {
        change([&] { held_.reset(); });
    }
    [[nodiscard]] std::vector<std::size_t> sizes() {
        const std::scoped_lock guard(mutex_);
        return sizes_;
    }
    void await_calls(std::size_t count) {
        std::unique_lock guard(mutex_);
        EXPECT_TRUE(changed_.wait_for(guard, 30s, [&] { return sizes_.size() >= count; }));
    }

    Result<std::vector<Reply>> apply(std::span<const Request> requests, Deadline deadline) override {
        {
            std::unique_lock guard(mutex_);
            sizes_.push_back(requests.size());
            changed_.notify_all();
            changed_.wait(guard, [&] {
                return !held_ ||
                       std::ranges::none_of(requests, [&](const Request& each) { return name_of(each) == *held_; });
            });
        }
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
    Result<EventPage> events(const EventCursor& after, std::size_t limit, Deadline deadline) override {
        return inner_.events(after, limit, deadline);
    }
    Result<EventCursor> end_of_events(Deadline deadline) override { return inner_.end_of_events(deadline); }
    StoreProperties properties() const override { return inner_.properties(); }
    StoreInfo info() const override { return inner_.info(); }
    std::optional<StoreId> store_id() const override { return inner_.store_id(); }
    std::vector<Finding> examine(Deadline deadline) override { return inner_.examine(deadline); }

private:
    template <class Change>
    void change(Change change) {
        {
            const std::scoped_lock guard(mutex_);
            change();
        }
        changed_.notify_all();
    }

    Store& inner_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<LockName> held_{};    ///< Guarded by mutex_, as what follows.
    std::vector<std::size_t> sizes_{};  ///< Of the calls, in their order.
};

class BatcherTest : public testing::Test {
protected:
    ~BatcherTest() override { store_.let_go(); }

    [[nodiscard]] static Request request(const char* name) {
        return Acquire{.name = lock(name), .as = Credentials::random(), .holder = {"h", ""}, .ttl = *Ttl::of(60s)};
    }
    bool submit(const char* name, Deadline deadline = Deadline::never()) {
        return batcher_.submit({request(name)}, deadline, [this, name](const Applied& applied) {
            const bool is_granted = applied.replies && applied.replies->front();
            answers_.push_back(std::string(name) + (is_granted ? "+" : applied.replies ? "-" : "?"));
        });
    }
    [[nodiscard]] bool await_answers(std::size_t count) {
        return loop_.run_until([&] { return answers_.size() >= count; });
    }

    ManualClock clock_;
    std::unique_ptr<Store> inner_ = must(open_store("memory:", clock_));
    HeldStore store_{*inner_};
    TurnedLoop loop_;
    BatchObserver observer_{};
    std::vector<std::string> answers_{};
    Batcher batcher_{loop_,
                     [this](std::function<void()> call) {
                         calls_.emplace_back(std::move(call));
                         return true;
                     },
                     store_,
                     observer_,
                     {.waiting = 5, .batch = 4, .under_way = 2, .slow = 1ms}};
    std::vector<std::jthread> calls_{};  ///< One for each. Last, so that they end before what they use.
};

TEST_F(BatcherTest, RequestsThatArriveWhileABatchIsUnderWayFormTheNextOne) {
    store_.hold("a");
    submit("a");
    store_.await_calls(1);
    for (const char* name : {"b", "c", "d"}) submit(name);
    store_.let_go();
    ASSERT_TRUE(await_answers(4));
    EXPECT_THAT(store_.sizes(), ElementsAre(1, 3));
    EXPECT_THAT(answers_, ElementsAre("a+", "b+", "c+", "d+"));
}

TEST_F(BatcherTest, ABatchHasNoMoreRequestsThanAllowed) {
    store_.hold("a");
    submit("a");
    store_.await_calls(1);
    for (const char* name : {"b", "c", "d", "e", "f"}) EXPECT_TRUE(submit(name));
    store_.let_go();
    ASSERT_TRUE(await_answers(6));
    EXPECT_THAT(store_.sizes(), ElementsAre(1, 4, 1));
}

TEST_F(BatcherTest, BeyondTheQueueARequestIsRefusedAtOnce) {
    store_.hold("a");
    submit("a");
    store_.await_calls(1);
    for (const char* name : {"b", "c", "d", "e", "f"}) EXPECT_TRUE(submit(name));
    EXPECT_FALSE(submit("g"));
    store_.let_go();
    ASSERT_TRUE(await_answers(6));
    EXPECT_TRUE(submit("g"));
    EXPECT_TRUE(await_answers(7));
}

TEST_F(BatcherTest, ALockThatIsStuckHoldsUpItsOwnRequestsAndNoOthers) {
    store_.hold("stuck");
    submit("stuck");
    store_.await_calls(1);
    submit("stuck");
    submit("b");
    EXPECT_THAT(answers_, testing::IsEmpty());
    loop_.let_time_pass();
    ASSERT_TRUE(await_answers(1));
    EXPECT_THAT(answers_, ElementsAre("b+"));
    store_.let_go();
    ASSERT_TRUE(await_answers(3));
    EXPECT_THAT(answers_, ElementsAre("b+", "stuck+", "stuck-")) << "in the order in which they came";
}

TEST_F(BatcherTest, ARequestWhoseTimeIsOverIsNotSent) {
    store_.hold("a");
    submit("a");
    store_.await_calls(1);
    submit("b", Deadline::in(clock_, 1s));
    submit("c");
    clock_.advance(2s);
    store_.let_go();
    ASSERT_TRUE(await_answers(3));
    EXPECT_THAT(answers_, testing::UnorderedElementsAre("a+", "b?", "c+"));
    EXPECT_EQ(must(inner_->inspect(lock("b"), Deadline::never())).token.value, 0U);
}

TEST_F(BatcherTest, ACallerInAHurryDoesNotMakeTheOthersFail) {
    store_.hold("d");
    submit("d");
    store_.await_calls(1);
    submit("e", Deadline::in(clock_, 1s));
    submit("f");
    store_.hold("e");
    ASSERT_TRUE(await_answers(1));
    store_.await_calls(2);
    clock_.advance(2s);
    store_.let_go();
    ASSERT_TRUE(await_answers(3));
    EXPECT_THAT(answers_, ElementsAre("d+", "e?", "f+"));
}

}  // namespace
}  // namespace holdfast::client
