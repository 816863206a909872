// Threads that ask at once share a batch, and nothing else. The store is a function that the test holds up: what it is
// asked meanwhile has to gather, so nothing here depends on which thread is faster.
#include "stores/common/gathering.hpp"

#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <condition_variable>
#include <latch>
#include <map>
#include <set>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using Replies = Result<std::vector<Reply>>;

/// Refuses each request with its own lock's name, after the test has let it.
class Held {
public:
    stores::AttemptResult answer(std::span<const Request> requests, Deadline deadline) {
        std::unique_lock lock(mutex_);
        batches_.push_back(requests.size());
        for (const Request& request : requests) {
            shared_.insert(name_of(request).text());
            deadlines_[name_of(request).text()] = deadline.at;
        }
        changed_.notify_all();
        const bool busy =
            busy_ && std::ranges::any_of(requests, [&](const Request& request) { return name_of(request) == *busy_; });
        // A batch that must not wait for locks does not wait for the test either, if it is that lock.
        const bool quick = name_of(requests.front()) == tests::lock("quick");
        changed_.wait(lock, [&] { return open_ || quick || ((busy || singles_pass_) && requests.size() == 1); });
        if (busy)
            return std::unexpected(stores::AttemptError{
                stores::AttemptError::Kind::locks_busy, {Errc::store_unavailable, "busy"}, {*busy_}, {}});
        if (fails_ && requests.size() > 1)
            return std::unexpected(stores::AttemptError{stores::AttemptError::Kind::final, *fails_});
        return replies_to(requests);
    }
    stores::AttemptResult answer_alone(std::span<const Request> requests, Deadline deadline) {
        std::unique_lock lock(mutex_);
        for (const Request& request : requests) {
            alone_.push_back(name_of(request).text());
            deadlines_[name_of(request).text()] = deadline.at;
        }
        changed_.notify_all();
        changed_.wait(lock, [&] { return open_; });
        return replies_to(requests);
    }
    void await_alone(std::size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return alone_.size() >= count; });
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
    /// Somebody else has this lock in hand.
    void make_busy(const std::string& name) { busy_ = tests::lock(name); }
    void let_single_ones_pass() {
        const std::scoped_lock lock(mutex_);
        singles_pass_ = true;
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
    /// The locks that were asked for together and then alone. A call that comes when no other is under way is sent
    /// alone at once.
    std::set<std::string> shared_and_alone() {
        const std::scoped_lock lock(mutex_);
        std::set<std::string> both;
        for (const std::string& name : alone_)
            if (shared_.contains(name)) both.insert(name);
        return both;
    }
    /// The locks that were asked for alone.
    std::vector<std::string> alone() {
        const std::scoped_lock lock(mutex_);
        return alone_;
    }

private:
    static std::vector<Reply> replies_to(std::span<const Request> requests) {
        std::vector<Reply> replies;
        for (const Request& request : requests)
            replies.push_back(std::unexpected(Error{Errc::lock_conflict, name_of(request).text()}));
        return replies;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
    bool singles_pass_ = false;
    std::optional<Error> fails_{};
    std::optional<LockName> busy_{};
    std::vector<std::size_t> batches_{};
    std::set<std::string> shared_{};
    std::vector<std::string> alone_{};
    std::map<std::string, Boottime> deadlines_{};
};

class GatheringTest : public testing::Test {
protected:
    /// Asks for `name` on a thread of its own.
    void ask(const std::string& name, Deadline deadline = Deadline::never()) { ask_for_all({name}, deadline); }
    void ask_for_all(const std::vector<std::string>& names, Deadline deadline = Deadline::never()) {
        answers_.push_back(std::make_unique<Replies>());
        threads_.emplace_back([this, names, deadline, &answer = *answers_.back()] {
            std::vector<Request> requests;
            for (const std::string& name : names) requests.emplace_back(by_alice(lock(name)));
            answer = gathering_.apply(requests, deadline);
        });
    }
    /// One went alone and two are under way, and all wait for the test.
    void fill() {
        ask("alone");
        held_.await_alone(1);
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
    stores::Gathering gathering_{host_clock(), [this](auto requests, Deadline deadline, stores::Busy busy) {
                                     return busy == stores::Busy::report ? held_.answer(requests, deadline)
                                                                         : held_.answer_alone(requests, deadline);
                                 }};
    std::vector<std::unique_ptr<Replies>> answers_{};
    std::vector<std::jthread> threads_{};
};

TEST_F(GatheringTest, EverybodyGetsTheAnswerToTheirOwnQuestion) {
    fill();
    for (int i = 0; i < 20; ++i) ask("lock " + std::to_string(i));
    finish();
    for (std::size_t i = 0; i < 20; ++i) {
        ASSERT_TRUE(answer(i + 3)) << answer(i + 3).error().message;
        ASSERT_EQ(answer(i + 3)->size(), 1U);
        EXPECT_EQ(answer(i + 3)->front().error().message, "lock " + std::to_string(i));
    }
}

TEST_F(GatheringTest, ACallForSeveralLocksGetsTheAnswersToThose) {
    fill();
    for (int i = 0; i < 20; ++i) {
        std::vector<std::string> names;
        for (int lock = 0; lock <= i % 3; ++lock) names.push_back(std::to_string(i) + "/" + std::to_string(lock));
        ask_for_all(names);
    }
    finish();
    for (std::size_t i = 0; i < 20; ++i) {
        ASSERT_TRUE(answer(i + 3)) << answer(i + 3).error().message;
        ASSERT_EQ(answer(i + 3)->size(), i % 3 + 1);
        for (std::size_t lock = 0; lock <= i % 3; ++lock)
            EXPECT_EQ((*answer(i + 3))[lock].error().message, std::to_string(i) + "/" + std::to_string(lock));
    }
}

TEST_F(GatheringTest, AFailureThatChangedNothingIsNotShared) {
    held_.fail_when_shared(Errc::store_unavailable);
    fill();
    for (int i = 0; i < 20; ++i) ask("lock " + std::to_string(i));
    finish();
    for (std::size_t i = 0; i < 20; ++i) EXPECT_TRUE(answer(i + 3)) << answer(i + 3).error().message;
}

TEST_F(GatheringTest, AnUnknownOutcomeIsUnknownToAllCallsOfTheBatch) {
    held_.fail_when_shared(Errc::outcome_unknown);
    fill();
    for (int i = 0; i < 20; ++i) ask("lock " + std::to_string(i));
    // The first of them that goes has waited for the others.
    held_.await_batches(3);
    finish();
    const auto batches = held_.batches();
    const auto unknown = std::ranges::count_if(
        answers_, [](const auto& answer) { return !*answer && answer->error().code == Errc::outcome_unknown; });
    std::size_t shared = 0;
    for (const std::size_t batch : batches) shared += batch > 1 ? batch : 0;
    EXPECT_EQ(static_cast<std::size_t>(unknown), shared);
    EXPECT_THAT(held_.shared_and_alone(), testing::IsEmpty()) << "what may have been done is not done again";
}

TEST_F(GatheringTest, OnlyACallForABusyLockIsSentAlone) {
    held_.make_busy("lock 7");
    fill();
    for (int i = 0; i < 20; ++i) ask("lock " + std::to_string(i));
    finish();
    for (std::size_t i = 0; i < 20; ++i) {
        ASSERT_TRUE(answer(i + 3)) << answer(i + 3).error().message;
        EXPECT_EQ(answer(i + 3)->front().error().message, "lock " + std::to_string(i));
    }
    EXPECT_THAT(held_.alone(), testing::Contains("lock 7"));
    EXPECT_THAT(held_.shared_and_alone(), testing::IsSubsetOf({"lock 7"}));
}

TEST_F(GatheringTest, ACallThatWaitsForABusyLockBlocksNoOther) {
    held_.make_busy("busy");
    for (int i = 0; i < 3; ++i) ask("busy");
    held_.await_alone(3);
    // Somebody without time would not be sent if they were still under way; see below.
    const Request request = by_alice(lock("quick"));
    EXPECT_TRUE(gathering_.apply({&request, 1}, Deadline::in(host_clock(), 0ms)));
    finish();
}

TEST_F(GatheringTest, AStuckBatchDoesNotHoldUpTheOthers) {
    fill();
    ask("third");
    // Nothing comes back before this one has left.
    held_.await_batches(3);
    finish();
    EXPECT_TRUE(answer(3));
}

TEST_F(GatheringTest, NobodysRequestIsCarriedOutAfterItsOwnDeadline) {
    fill();
    // The earliest is neither of the first nor of the last.
    const auto deadline_of = [start = host_clock().boottime()](int i) {
        return Deadline{start + 2h - (i * 7 % 20) * 1min};
    };
    for (int i = 0; i < 20; ++i) ask("lock " + std::to_string(i), deadline_of(i));
    finish();
    for (int i = 0; i < 20; ++i) EXPECT_LE(held_.deadline_of("lock " + std::to_string(i)), deadline_of(i).at) << i;
}

// Callers that were answered together return one after the other, and the first of them would be sent by itself. That
// it waits for others is not certain to be seen every time; without it, it is never seen.
TEST_F(GatheringTest, BesideALargeBatchNobodyGoesByHimselfAtOnce) {
    fill();
    for (int i = 0; i < 4; ++i) ask("lock " + std::to_string(i));
    held_.await_batches(3);
    held_.let_single_ones_pass();
    for (const std::size_t i : {1, 2}) threads_[i].join();
    bool together = false;
    for (int attempt = 0; attempt < 200 && !together; ++attempt) {
        const std::size_t before = held_.batches().size();
        {
            std::vector<std::jthread> few;
            for (int i = 0; i < 3; ++i)
                few.emplace_back([&] {
                    const Request request = by_alice(lock("quick"));
                    EXPECT_TRUE(gathering_.apply({&request, 1}, Deadline::never()));
                });
        }
        together = held_.batches()[before] > 1;
    }
    finish();
    EXPECT_TRUE(together);
}

TEST_F(GatheringTest, ACallWithoutTimeLeftIsNotSent) {
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
