// Goal: a hold hears from the store that it was lost, long before a renewal is due; nothing but an answer of the store
// makes a loss; and what is held for a moment pays nothing for it. Method: the memory store with leases of an hour, so
// that only the push can explain a loss, behind a line that fails.

#include "client/event_log.hpp"
#include "client/faulty_store.hpp"
#include "client/kept_lease.hpp"
#include "client/loss_watches.hpp"
#include "client/watching.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <list>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using enum HoldEventKind;

class PushedLoss : public testing::Test {
protected:
    Deadline soon() const { return Deadline::in(host_clock(), 5s); }
    HoldOptions long_lease() {
        HoldOptions options;
        options.holder = {"alice", ""};
        options.ttl = lasting(1h);
        options.observer = log_.observer();
        return options;
    }
    void break_it(const Hold& held) {
        must(inner_->apply_one(Break{held.name(), held.credentials().lock_id, "alice@ops", "wrong branch"}, soon()));
    }
    void await_watches(int count) {
        ASSERT_TRUE(becomes_true([&] { return store_.watches() >= count; })) << store_.watches();
    }
    std::string reason(const Hold& held) {
        log_.await(lost);
        return held.loss()->message;
    }

    ManualClock clock_;
    std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    EventLog log_;
    const LockName name_ = lock("deploy/web");
};

TEST_F(PushedLoss, NamesWhoBrokeTheLockAndWhy) {
    auto held = must(hold(store_, name_, long_lease()));
    break_it(held);
    EXPECT_THAT(reason(held), AllOf(HasSubstr("taken away by alice@ops"), HasSubstr("wrong branch")));
    EXPECT_TRUE(held.lost().stop_requested());
    EXPECT_EQ(held.loss()->code, Errc::lock_not_held);
    EXPECT_THAT(log_.kinds(), testing::ElementsAre(acquiring, acquired, broken, lost));
}

TEST_F(PushedLoss, NamesWhoApprovedAnOverrideAndForWhom) {
    auto held = must(hold(store_, name_, long_lease()));
    const Acquire bob = by_bob(name_);
    must(inner_->apply_one(Ask{name_, bob.as, bob.holder, "", bob.ttl, bob.ttl}, soon()));
    must(inner_->apply_one(Answer{name_, bob.as.lock_id, Verdict::approve, "carla", "release is due"}, soon()));
    EXPECT_THAT(reason(held), AllOf(HasSubstr("bob"), HasSubstr("carla"), HasSubstr("release is due")));
    EXPECT_THAT(log_.kinds(), testing::ElementsAre(acquiring, acquired, transferred, lost));
}

TEST_F(PushedLoss, IsHeardByAHoldThatIsNotRenewedAndDoesNotProlongIt) {
    auto options = long_lease();
    options.renew = false;
    auto held = must(hold(store_, name_, options));
    store_.end_watches_with(std::nullopt);
    ASSERT_TRUE(becomes_true([&] { return store_.checks() > 0; }));
    store_.let_watches_be();
    EXPECT_EQ(must(inner_->inspect(name_, soon())).lease->renew_seq, 0U);
    break_it(held);
    EXPECT_THAT(reason(held), HasSubstr("alice@ops"));
}

TEST_F(PushedLoss, IsNotMadeByAWakeUpThatWasWrong) {
    auto held = must(hold(store_, name_, long_lease()));
    store_.end_watches_with(std::nullopt);
    ASSERT_TRUE(becomes_true([&] { return store_.checks() >= 2; })) << "it is subscribed again, and asked again";
    EXPECT_FALSE(held.loss());
    EXPECT_LE(store_.checks(), store_.watches()) << "once for each wake-up";
    EXPECT_EQ(must(inner_->inspect(name_, soon())).lease->renew_seq, 0U) << "to ask is not to renew";
    EXPECT_THAT(held.release(), Granted());
}

TEST_F(PushedLoss, IsNotMadeByAWatchThatFailed) {
    auto held = must(hold(store_, name_, long_lease()));
    store_.end_watches_with(fail(Errc::store_unavailable, "the server is away"));
    await_watches(2);
    EXPECT_FALSE(held.loss());
    EXPECT_EQ(store_.checks(), 0) << "the store said nothing, so there is nothing to ask";
    store_.let_watches_be();
    break_it(held);
    EXPECT_THAT(reason(held), HasSubstr("alice@ops"));
}

TEST_F(PushedLoss, IsNotMadeByAQuestionThatFailed) {
    auto held = must(hold(store_, name_, long_lease()));
    store_.end_watches_with(std::nullopt);
    await_watches(1);
    store_.cut();
    ASSERT_TRUE(becomes_true([&] { return store_.checks() > 0; }));
    break_it(held);
    // Nothing is heard, and every question fails.
    const int before = store_.watches();
    await_watches(before + 1);
    EXPECT_FALSE(held.loss());
    store_.heal();
    EXPECT_THAT(reason(held), HasSubstr("alice@ops")) << "it is asked again when the store is back";
}

TEST_F(PushedLoss, IsAStoreThatWasReachedAndHasLostEverything) {
    auto held = must(hold(store_, name_, long_lease()));
    store_.lose_everything();
    EXPECT_THAT(reason(held), AllOf(HasSubstr("deploy/web"), HasSubstr("the schema was removed")));
    EXPECT_EQ(held.loss()->code, Errc::lock_not_held);
}

TEST_F(PushedLoss, AtARenewalIsAStoreThatHasLostEverythingToo) {
    auto options = long_lease();
    options.renew_interval = 20ms;
    auto held = must(hold(store_, name_, options));
    log_.await(renewed);
    store_.lose_everything();
    EXPECT_THAT(reason(held), HasSubstr("the schema was removed"));
}

TEST_F(PushedLoss, CostsNothingWhileAHoldIsYoung) {
    // The clock stands still, so it stays young.
    inner_ = must(open_store("memory:", clock_));
    store_.replace_by(*inner_);
    auto options = long_lease();
    options.clock = &clock_;
    auto held = must(hold(store_, name_, options));
    for (int i = 0; i < 20; ++i) {
        auto other = must(hold(store_, lock(fmt::format("short/{}", i)), options));
        EXPECT_THAT(other.release(), Granted());
    }
    EXPECT_EQ(store_.watches(), 0);
    clock_.advance(1s);
    await_watches(1);
    EXPECT_EQ(store_.watches(), 1) << "once, for the one that is left";
    EXPECT_THAT(held.release(), Granted());
}

TEST_F(PushedLoss, OfAThousandHoldsNeedsOneMoreThread) {
    const auto before = threads_of_this_process();
    std::list<Hold> holds;
    for (int i = 0; i < 1000; ++i) {
        auto options = long_lease();
        if (i != 500) options.observer = nullptr;
        holds.push_back(must(hold(store_, lock(fmt::format("job/{}", i)), options)));
    }
    const auto without_watches = threads_of_this_process();
    await_watches(1000);
    EXPECT_LE(threads_of_this_process(), without_watches + 1);
    EXPECT_LE(without_watches, before + 2) << "the timekeeper, and one for callbacks";
    break_it(*std::next(holds.begin(), 500));
    log_.await(lost);
    EXPECT_EQ(std::ranges::count_if(holds, [](const Hold& each) { return each.loss().has_value(); }), 1);
    EXPECT_EQ(store_.checks(), 1);
}

TEST_F(PushedLoss, MeetsAReleaseAtTheSameMoment) {
    // Subscribed at once, so that many rounds fit.
    const Clock& clock = host_clock();
    HoldOptions options = long_lease();
    options.clock = &clock;
    std::atomic<int> woken = 0;
    client::LossWatches watches(store_, [&] { ++woken; });
    for (int round = 0; round < 300; ++round) {
        const Acquire alice = by_alice(name_);
        const client::KeptLease lease(store_, options,
                                      {must(inner_->apply_one(alice, soon())), clock.boottime(), alice.as});
        watches.add(lease, clock.boottime() - 1h);
        std::jthread breaker([&] { must(inner_->apply_one(Break{name_, alice.as.lock_id, "operator", ""}, soon())); });
        std::jthread timekeeper([&] {
            watches.tend(clock.boottime());
            for (const client::KeptLease* hint : watches.take_hints(clock.boottime())) EXPECT_EQ(hint, &lease);
            if (round % 2 == 0) watches.forget(lease);
        });
        if (round % 3 == 0) timekeeper.join();
        watches.remove(lease);
    }
    watches.tend(clock.boottime());
    EXPECT_FALSE(watches.has_work(clock.boottime()));
}

}  // namespace
}  // namespace holdfast::tests
