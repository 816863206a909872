// Retention: old events are removed, young ones stay, and the log names the actor.

#include "holdfast/prune.hpp"

#include "client/faulty_store.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::days day{1};

class PruneTest : public testing::Test {
protected:
    /// So many events of one lock, at once.
    void make_events(const LockName& name, int count) {
        const Acquire alice = by_alice(name, 24h);
        std::vector<Request> requests{alice};
        for (int i = 1; i < count; ++i) requests.emplace_back(renewal(alice));
        for (const Reply& reply : must(inner_->apply(requests, Deadline::never()))) ASSERT_THAT(reply, Granted());
    }
    Result<Pruned> prune(PruneOptions options = {}) { return holdfast::prune(store_, options); }
    [[nodiscard]] std::vector<AuditEvent> events(const LockName& name) {
        return must(inner_->history({.name = name}, Deadline::never()));
    }
    void expect_whole(const LockName& name) {
        EXPECT_THAT(verify_chain(events(name), must(inner_->inspect(name, Deadline::never()))), Granted());
    }

    ManualClock clock_;
    std::unique_ptr<Store> inner_ = must(open_store("memory:", clock_));
    FaultyStore store_{*inner_};
    const LockName name_ = lock("deploy/web");
};

TEST_F(PruneTest, WhatIsOlderThanTheTimeToKeepGoes) {
    make_events(name_, 5);
    clock_.advance(60 * day);
    make_events(lock("young"), 5);
    const Acquire bob = by_bob(name_);
    must(inner_->apply_one(bob, Deadline::never()));
    must(inner_->apply_one(release(bob), Deadline::never()));
    clock_.advance(31 * day);

    const Pruned pruned = must(prune({.actor = "cron", .reason = "retention"}));
    EXPECT_EQ(pruned.events, 5U);
    EXPECT_EQ(pruned.locks, 1U);
    EXPECT_EQ(pruned.visited, 2U);
    const auto left = events(name_);
    ASSERT_EQ(left.size(), 3U);
    EXPECT_EQ(left.front().seq, 6U);
    EXPECT_EQ(left.back().kind, EventKind::pruned);
    EXPECT_EQ(left.back().actor, "cron");
    EXPECT_EQ(left.back().reason, "retention");
    EXPECT_EQ(events(lock("young")).size(), 5U);
    expect_whole(name_);
}

TEST_F(PruneTest, AnEventStaysToTheVeryMillisecond) {
    make_events(name_, 3);
    clock_.advance(10s);
    EXPECT_EQ(must(prune({.keep = 10s})).events, 0U);
    clock_.advance(1ms);
    EXPECT_EQ(must(prune({.keep = 10s})).events, 2U);
}

TEST_F(PruneTest, EveryLockKeepsItsNewestEventAndPruningAgainChangesNothing) {
    for (int i = 0; i < 1250; ++i) make_events(lock("lock/" + std::to_string(i)), i % 4 + 1);
    clock_.advance(100 * day);
    const Pruned pruned = must(prune());
    EXPECT_EQ(pruned.visited, 1250U) << "more than two pages";
    // Of those with three events two went, and of those with four three: one that is old would only be replaced.
    EXPECT_EQ(pruned.locks, 624U);
    EXPECT_EQ(pruned.events, 312U * 2 + 312U * 3);
    for (int i = 0; i < 1250; ++i) expect_whole(lock("lock/" + std::to_string(i)));
    const int before = store_.applied();
    EXPECT_EQ(must(prune()).events, 0U);
    clock_.advance(100 * day);
    EXPECT_EQ(must(prune()).events, 0U) << "what the pruning left is old by now, and not worth it";
    EXPECT_EQ(store_.applied(), before);
}

TEST_F(PruneTest, AHistoryOfThousandsIsPrunedInSteps) {
    make_events(name_, 3210);
    clock_.advance(100 * day);
    EXPECT_EQ(must(prune()).events, 3209U);
    EXPECT_GT(store_.applied(), 3) << "each step is small";
    EXPECT_EQ(events(name_).front().seq, 3210U);
    expect_whole(name_);
}

TEST_F(PruneTest, CountingChangesNothing) {
    make_events(name_, 1500);
    clock_.advance(100 * day);
    const Pruned counted = must(prune({.only_count = true}));
    EXPECT_EQ(counted.events, 1499U);
    EXPECT_EQ(store_.applied(), 0);
    EXPECT_EQ(events(name_).size(), 1500U);
    EXPECT_EQ(must(prune()).events, counted.events);
}

TEST_F(PruneTest, AfterALostAnswerItGoesOn) {
    make_events(name_, 700);
    clock_.advance(100 * day);
    store_.lose_answers(1);
    EXPECT_EQ(must(prune()).events, 699U);
    expect_whole(name_);
    EXPECT_EQ(events(name_).front().seq, 700U);
}

TEST_F(PruneTest, WhatMayHaveBeenDoneIsNotCalledUndoneBecauseTheStoreIsAwayNow) {
    make_events(name_, 3);
    clock_.advance(100 * day);
    store_.lose_answers(1);
    store_.before_answers([&] { store_.cut(); });
    EXPECT_THAT(prune(), RefusedWith(Errc::outcome_unknown));
    EXPECT_EQ(events(name_).size(), 2U);
}

TEST_F(PruneTest, AStoreThatIsAwayIsSaidToBe) {
    make_events(name_, 3);
    clock_.advance(100 * day);
    store_.cut();
    EXPECT_THAT(prune(), RefusedWith(Errc::store_unavailable));
    EXPECT_EQ(events(name_).size(), 3U);
}

TEST_F(PruneTest, ARefusalAmongManyRepliesIsReported) {
    for (int i = 0; i < 5; ++i) make_events(lock("lock/" + std::to_string(i)), 3);
    clock_.advance(100 * day);
    store_.refuse_last(Errc::denied);
    EXPECT_THAT(prune(), RefusedWith(Errc::denied));
}

TEST_F(PruneTest, StoppingItKeepsWhatWasDone) {
    for (int i = 0; i < 1250; ++i) make_events(lock("lock/" + std::to_string(i)), 3);
    clock_.advance(100 * day);
    std::stop_source stop;
    PruneOptions options;
    options.stop = stop.get_token();
    options.on_progress = [&](const Pruned&) { stop.request_stop(); };
    const Pruned pruned = must(prune(options));
    EXPECT_EQ(pruned.visited, 500U);
    EXPECT_EQ(pruned.events, 1000U);
    EXPECT_EQ(must(prune()).events, 1500U);
}

}  // namespace
}  // namespace holdfast::tests
