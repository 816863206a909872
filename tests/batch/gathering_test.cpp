// Threads that ask at once share a batch, and nothing else. The store is a function that the test holds up: what it is
// asked meanwhile has to gather, so nothing here depends on who is faster.
#include "stores/batch/gathering.hpp"

#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <latch>
#include <map>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using Replies = Result<std::vector<Reply>>;

/// Refuses each request with its own lock's name, after the test has let it.
class Held {
public:
    Replies answer(std::span<const Request> requests, Deadline deadline) {
        std::unique_lock lock(mutex_);
        batches_.push_back(requests.size());
        for (const Request& request : requests) deadlines_[name_of(request).text()] = deadline.at;
        changed_.notify_all();
        changed_.wait(lock, [&] { return open_; });
        if (fails_ && requests.size() > 1) return std::unexpected(*fails_);
        std::vector<Reply> replies;
        for (const Request& request : requests)
            replies.push_back(std::unexpected(Error{Errc::lock_conflict, name_of(request).text()}));
        return replies;
    }
    void await_batches(std::size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return batches_.size() >= count; });
    }
    void open() {
        const std::scoped_lock lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }
    void fail_when_shared(Errc code) { fails_ = Error{code, "together"}; }
    /// How many requests each call had.
    std::vector<std::size_t> batches() {
        const std::scoped_lock lock(mutex_);
        return batches_;
    }
    /// Of the last call that had a request for this lock.
    Boottime deadline_of(const std::string& name) {
        const std::scoped_lock lock(mutex_);
        return deadlines_.at(name);
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
    std::optional<Error> fails_{};
    std::vector<std::size_t> batches_{};
    std::map<std::string, Boottime> deadlines_{};
};

class GatheringTest : public testing::Test {
protected:
    /// Asks for `name` on a thread of its own.
    void ask(const std::string& name, Deadline deadline = Deadline::never()) {
        answers_.push_back(std::make_unique<Replies>());
        threads_.emplace_back([this, name, deadline, &answer = *answers_.back()] {
            const Request request = by_alice(lock(name));
            answer = gathering_.apply({&request, 1}, deadline);
        });
    }
    /// Two are under way, and wait for the test.
    void fill() {
        ask("first");
        held_.await_batches(1);
        ask("second");
        held_.await_batches(2);
    }
    void finish() {
        held_.open();
        threads_.clear();
    }
    const Replies& answer(std::size_t i) { return *answers_[i]; }

    Held held_;
    stores::Gathering gathering_{host_clock(),
                                 [this](auto requests, Deadline deadline) { return held_.answer(requests, deadline); }};
    std::vector<std::unique_ptr<Replies>> answers_{};
    std::vector<std::jthread> threads_{};
};

TEST_F(GatheringTest, EverybodyGetsTheAnswerToTheirOwnQuestion) {
    fill();
    for (int i = 0; i < 20; ++i) ask("lock " + std::to_string(i));
    finish();
    for (std::size_t i = 0; i < 20; ++i) {
        ASSERT_TRUE(answer(i + 2)) << answer(i + 2).error().message;
        ASSERT_EQ(answer(i + 2)->size(), 1U);
        EXPECT_EQ(answer(i + 2)->front().error().message, "lock " + std::to_string(i));
    }
}

TEST_F(GatheringTest, AFailureThatChangedNothingIsNotShared) {
    held_.fail_when_shared(Errc::store_unavailable);
    fill();
    for (int i = 0; i < 20; ++i) ask("lock " + std::to_string(i));
    finish();
    for (std::size_t i = 0; i < 20; ++i) EXPECT_TRUE(answer(i + 2)) << answer(i + 2).error().message;
}

TEST_F(GatheringTest, AStuckBatchDoesNotHoldUpTheOthers) {
    fill();
    ask("third");
    // Nothing comes back before this one has left.
    held_.await_batches(3);
    finish();
    EXPECT_TRUE(answer(2));
}

TEST_F(GatheringTest, NobodysRequestIsCarriedOutAfterItsOwnDeadline) {
    fill();
    const auto deadline_of = [start = host_clock().boottime()](int i) { return Deadline{start + 2h - i * 1min}; };
    for (int i = 0; i < 20; ++i) ask("lock " + std::to_string(i), deadline_of(i));
    finish();
    for (int i = 0; i < 20; ++i) EXPECT_LE(held_.deadline_of("lock " + std::to_string(i)), deadline_of(i).at) << i;
}

TEST_F(GatheringTest, WhoHasNoTimeLeftIsNotSent) {
    fill();
    const Request request = by_alice(lock("late"));
    const auto late = gathering_.apply({&request, 1}, Deadline::in(host_clock(), 0ms));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Errc::store_unavailable);
    EXPECT_EQ(held_.batches().size(), 2U);
    finish();
}

}  // namespace
}  // namespace holdfast::tests
