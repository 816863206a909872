// Goal: what blocks delays nothing else, and what does not block needs one thread. Method: tasks that wait for the
// test.

#include "client/worker_threads.hpp"

#include "client/watching.hpp"
#include "support/matchers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class WorkerThreadsTest : public testing::Test {
protected:
    WorkerThreadsTest() { must(workers_.start()); }
    ~WorkerThreadsTest() override { open(); }

    void block_one(std::chrono::milliseconds patience) {
        workers_.post({.run = [this] { gate_.wait(); }, .patience = patience});
    }
    void open() {
        if (!std::exchange(is_open_, true)) gate_.count_down();
    }
    [[nodiscard]] bool becomes_true_with_relief(const std::function<bool()>& holds) {
        return becomes_true([&] {
            const auto relief = workers_.relieve();
            EXPECT_FALSE(relief.to_run_here);
            return holds();
        });
    }

    std::latch gate_{1};
    bool is_open_ = false;
    client::WorkerThreads workers_;  ///< Last, so that they end before what they use.
};

TEST_F(WorkerThreadsTest, OneDoesAllThatDoesNotBlock) {
    std::atomic<int> done = 0;
    for (int i = 0; i < 1000; ++i) workers_.post({.run = [&] { ++done; }, .patience = 60s});
    ASSERT_TRUE(becomes_true_with_relief([&] { return done == 1000; }));
    EXPECT_TRUE(becomes_true([&] { return threads_of_the_library() == 1; }));
}

TEST_F(WorkerThreadsTest, WhatBlocksDelaysTheNextForAMomentOnly) {
    for (int i = 0; i < 3; ++i) block_one(1ms);
    std::atomic<bool> is_done = false;
    workers_.post({.run = [&] { is_done = true; }, .patience = 1ms});
    EXPECT_TRUE(becomes_true_with_relief([&] { return is_done.load(); }));
    open();
    EXPECT_TRUE(becomes_true_with_relief([&] { return threads_of_the_library() == 1; }))
        << "those that are not needed any more end";
}

TEST_F(WorkerThreadsTest, WhatCanWaitLongestIsDoneLast) {
    block_one(0ms);  // Taken first, and nobody calls for another thread.
    std::mutex mutex;
    std::vector<int> order;
    const auto note = [&](int number) {
        const std::scoped_lock lock(mutex);
        order.push_back(number);
    };
    workers_.post({.run = [&] { note(2); }, .patience = 1h});
    workers_.post({.run = [&] { note(1); }, .patience = 30min});
    open();
    ASSERT_TRUE(becomes_true([&] {
        const std::scoped_lock lock(mutex);
        return order.size() == 2;
    }));
    EXPECT_THAT(order, testing::ElementsAre(1, 2));
}

}  // namespace
}  // namespace holdfast::tests
