// Goal: a holder counts its lease from before the request left, however long the answer took. Method: a clock
// that stands still, except that it moves while an answer is on its way.

#include "client/event_log.hpp"
#include "client/faulty_store.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class DeadlineTest : public testing::TestWithParam<std::chrono::milliseconds> {
protected:
    HoldOptions options() {
        HoldOptions options;
        options.ttl = lasting(900ms);
        options.wait = GetParam();
        options.clock = &clock_;
        options.observer = log_.observer();
        return options;
    }

    ManualClock clock_;
    std::unique_ptr<Store> inner_ = must(open_store("memory:", clock_));
    FaultyStore store_{*inner_};
    EventLog log_;
    const LockName name_ = lock("deploy/web");
};

TEST_P(DeadlineTest, OfAGrantDoesNotMoveWithTheTimeThatTheAnswerTook) {
    const Boottime sent_at = clock_.boottime();
    store_.before_answers([&] { clock_.advance(250ms); });
    auto held = must(hold(store_, name_, options()));
    EXPECT_LT(held.deadline(), sent_at + 900ms);
    held.abandon();
}

TEST_P(DeadlineTest, OfARenewalDoesNotMoveWithTheTimeThatTheAnswerTook) {
    auto held = must(hold(store_, name_, options()));
    store_.before_answers([&] { clock_.advance(250ms); });
    const Boottime sent_at = clock_.boottime() + 300ms;
    clock_.advance(300ms);  // A third of the ttl: time to renew.
    log_.await(HoldEventKind::renewed);
    EXPECT_LT(held.deadline(), sent_at + 900ms);
    held.abandon();
}

// Without waiting and in the queue: two ways to the same lease.
INSTANTIATE_TEST_SUITE_P(Wait, DeadlineTest, testing::Values(0ms, 5000ms),
                         [](const auto& test) { return test.param == 0ms ? "AtOnce" : "InTurn"; });

}  // namespace
}  // namespace holdfast::tests
