// Goal: a hold is renewed as long as it lives, is called lost in time when it cannot be, and never comes
// back. Method: the memory store on the real clock with short leases, behind a line that can be cut.

#include "holdfast/hold.hpp"

#include "client/event_log.hpp"
#include "client/faulty_store.hpp"
#include "client/watching.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <latch>
#include <set>
#include <thread>
#include <unordered_map>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using enum HoldEventKind;

class HoldTest : public testing::Test {
protected:
    Deadline soon() const { return Deadline::in(host_clock(), 5s); }
    LockStatus look(const LockName& name) { return must(inner_->inspect(name, soon())); }
    HoldOptions short_lease(std::chrono::milliseconds ttl = 300ms) {
        HoldOptions options;
        options.holder = {"alice", ""};
        options.ttl = lasting(ttl);
        options.observer = log_.observer();
        return options;
    }

    std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    EventLog log_;
    const LockName name_ = lock("deploy/web");
};

TEST_F(HoldTest, IsRenewedLongerThanItsTtl) {
    auto held = must(hold(store_, name_, short_lease(1s)));
    const auto token = held.token();
    const Boottime first_deadline = held.deadline();
    log_.await(renewed, 5);  // Five thirds of the ttl.
    EXPECT_EQ(look(name_).state, LockState::held);
    EXPECT_EQ(held.token(), token);
    EXPECT_GT(held.deadline(), first_deadline);
    EXPECT_THAT(held.release(), Granted());
    EXPECT_EQ(look(name_).state, LockState::free);
}

TEST_F(HoldTest, HasTheClockOfItsStoreIfItIsGivenNone) {
    ManualClock clock;
    const auto store = must(open_store("memory:", clock));
    auto options = short_lease(1h);
    options.renew = false;
    auto held = must(hold(*store, name_, options));
    auto several = must(hold_all({{store.get(), lock("deploy/db"), options}}));
    EXPECT_GT(held.deadline(), clock.boottime());
    EXPECT_LE(held.deadline(), clock.boottime() + 1h);
    EXPECT_EQ(several.deadline(), held.deadline());
    clock.advance(1h);
    log_.await(lost, 2);
}

TEST_F(HoldTest, CanLeaveTheRenewingToTheCaller) {
    auto options = short_lease();
    options.renew_from = RenewFrom::the_call;
    const auto before = threads_of_this_process();
    auto held = must(hold(store_, name_, options));
    EXPECT_EQ(threads_of_this_process(), before) << "a thread was started for nothing";
    EXPECT_THAT(held.start_renewing(), Granted());
    EXPECT_THAT(held.start_renewing(), Granted()) << "the second call has nothing to do";
    log_.await(renewed, 2);
    EXPECT_THAT(held.release(), Granted());
    EXPECT_EQ(look(name_).state, LockState::free);
}

TEST_F(HoldTest, OfSeveralTheFirstIsRenewedWhileTheNextIsWaitedFor) {
    const LockName second = lock("deploy/zone");
    const Acquire other = by_bob(second, 60s);
    must(inner_->apply_one(other, soon()));
    auto options = short_lease(1s);
    options.renew_from = RenewFrom::the_call;
    options.wait = 60s;
    std::jthread gives_way([&] {
        log_.await(renewed, 4);  // More than its ttl.
        must(inner_->apply_one(release(other), soon()));
    });
    auto group = must(hold_all({{&store_, name_, options}, {&store_, second, options}}));
    EXPECT_FALSE(group.loss());
    EXPECT_THAT(group.release(), Granted());
}

TEST_F(HoldTest, AReleaseWaitsForTheRenewalThatIsUnderWay) {
    std::latch renewal_is_under_way(1);
    std::latch go_on(1);
    std::atomic<int> answers = 0;
    store_.before_answers([&] {
        if (++answers != 2) return;
        renewal_is_under_way.count_down();
        go_on.wait();
    });
    // Renewed soon, and far from the moment at which a renewal without an answer is given up.
    auto options = short_lease(60s);
    options.renew_interval = 100ms;
    auto held = must(hold(store_, name_, options));
    renewal_is_under_way.wait();
    Result<void> released;
    {
        const std::jthread releases([&] { released = held.release(); });
        for (int look = 0; look < 10'000 && store_.applied() == 2; ++look) std::this_thread::yield();
        EXPECT_EQ(store_.applied(), 2) << "the release overtook the renewal";
        go_on.count_down();
    }
    EXPECT_THAT(released, Granted());
    EXPECT_THAT(log_.kinds(), ElementsAre(acquiring, acquired, renewed, HoldEventKind::released));
}

TEST_F(HoldTest, ReleasesInTheDestructor) {
    {
        auto held = must(hold(store_, name_, short_lease(10s)));
    }
    EXPECT_EQ(look(name_).state, LockState::free);
    EXPECT_THAT(log_.kinds(), ElementsAre(acquiring, acquired, released));
}

TEST_F(HoldTest, IsRefusedWithTheHolderWhenSomebodyElseHolds) {
    must(inner_->apply_one(by_bob(name_), soon()));
    const auto refused = hold(store_, name_, short_lease());
    ASSERT_THAT(refused, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(refused.error().holder->lease->holder.text, "bob");
    EXPECT_THAT(log_.kinds(), ElementsAre(acquiring, blocked));
}

TEST_F(HoldTest, SurvivesFailedRenewalsWhileTimeIsLeft) {
    auto held = must(hold(store_, name_, short_lease(600ms)));
    store_.cut();
    const int before = store_.applied();
    const Deadline end = Deadline::in(host_clock(), time_limit);
    while (store_.applied() < before + 2 && !end.passed(host_clock())) std::this_thread::yield();
    store_.heal();
    log_.await(renewed);
    EXPECT_FALSE(held.loss());
    EXPECT_THAT(held.release(), Granted());
}

TEST_F(HoldTest, TellsOfEachRenewalThatFailedAndWhy) {
    std::atomic<int> failures = 0;
    auto options = short_lease(60s);
    options.renew_interval = 20ms;
    options.observer = [&](const HoldEvent& event) {
        if (event.kind != renew_failed) return;
        EXPECT_EQ(event.cause->code, Errc::store_unavailable);
        EXPECT_THAT(event.cause->message, testing::HasSubstr("the line is cut"));
        if (++failures == 2) log_.observer()({renewed, event.name});
    };
    auto held = must(hold(store_, name_, options));
    store_.cut();
    log_.await(renewed);
    EXPECT_FALSE(held.loss());
    EXPECT_FALSE(held.lost().stop_requested());
}

TEST_F(HoldTest, SaysNothingToTheStandardErrorOfTheProgram) {
    testing::internal::CaptureStderr();
    {
        auto options = short_lease(60s);
        options.observer = nullptr;
        const auto unheard = must(hold(store_, name_, options));
        const auto heard = must(hold(store_, lock("deploy/db"), short_lease(60s)));
        store_.cut();
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_THAT(log_.kinds(), ElementsAre(acquiring, acquired, released)) << "with what went wrong";
}

TEST_F(HoldTest, TakesTextForAName) {
    {
        auto options = short_lease(60s);
        options.holder = {"carol", ""};
        const auto held = must(hold(store_, "deploy/web", options));
        EXPECT_EQ(held.name(), name_);
        EXPECT_EQ(look(name_).lease->holder.text, "carol") << "the options count, too";
    }
    EXPECT_EQ(must(with_lock(store_, "deploy/web", short_lease(60s), [](Hold& held) { return held.name(); })), name_);
    EXPECT_THAT(hold(store_, "", short_lease(60s)), RefusedWith(Errc::name_invalid));
}

TEST_F(HoldTest, NamesCanBeKeysOfUnorderedContainers) {
    const std::unordered_map<LockName, int> found{{name_, 1}, {lock("deploy/db"), 2}};
    EXPECT_EQ(found.at(lock("deploy/web")), 1);
}

TEST_F(HoldTest, OnTwoStoresInMemoryOneNameIsTwoLocks) {
    const auto other = must(open_store("memory:"));
    const auto group = must(hold_all({{inner_.get(), name_}, {other.get(), name_}}));
    EXPECT_EQ(group.holds().size(), 2U);
    EXPECT_EQ(look(name_).state, LockState::held);
    EXPECT_EQ(must(other->inspect(name_, soon())).state, LockState::held);
}

TEST_F(HoldTest, AGroupIsLostAsSoonAsOneOfItIs) {
    auto group = must(hold_all({{&store_, lock("a"), short_lease(60s)}, {&store_, lock("b"), short_lease(60s)}}));
    const auto moved = std::move(group);
    EXPECT_FALSE(moved.lost().stop_requested());
    std::atomic<bool> told = false;
    const std::stop_callback tell(moved.lost(), [&] { told = true; });
    must(inner_->apply_one(Break{lock("b"), moved.find(lock("b"))->credentials().lock_id, "operator", ""}, soon()));
    EXPECT_TRUE(becomes_true([&] { return told.load(); }));
    EXPECT_TRUE(moved.loss());
}

TEST_F(HoldTest, ItsThreadsHaveNamesAndLeaveSignalsToTheProgram) {
    auto options = short_lease(60s);
    options.renew_interval = 20ms;
    const auto held = must(hold(store_, name_, options));
    log_.await(renewed);
    std::set<std::string> names;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::ifstream(task.path() / "comm") >> name;
        if (!name.starts_with("holdfast-")) continue;
        names.insert(name);
        std::string field;
        std::ifstream status(task.path() / "status");
        while (status >> field && field != "SigBlk:") continue;
        std::string blocked_signals;
        status >> blocked_signals;
        // All that can be blocked, and that the C library does not keep for itself.
        EXPECT_THAT(blocked_signals, testing::StartsWith("fffffffe7ffb")) << name;
    }
    EXPECT_THAT(names, testing::IsSupersetOf({"holdfast-renew", "holdfast-work"}));
}

TEST_F(HoldTest, IsLostBeforeTheStoreLetsAnybodyElseIn) {
    auto held = must(hold(store_, name_, short_lease()));
    LockState at_loss = LockState::free;
    const std::stop_callback seen(held.lost(), [&] { at_loss = look(name_).state; });
    store_.cut();
    log_.await(lost);
    EXPECT_EQ(at_loss, LockState::held);
    EXPECT_EQ(held.loss()->code, Errc::lock_expired);
}

TEST_F(HoldTest, StaysLostWhenTheStoreComesBack) {
    auto held = must(hold(store_, name_, short_lease()));
    store_.cut();
    log_.await(lost);
    store_.heal();
    const int before = store_.applied();
    EXPECT_THAT(held.release(), RefusedWith(Errc::lock_expired));
    EXPECT_EQ(store_.applied(), before) << "a lost hold talked to the store";
    EXPECT_TRUE(held.lost().stop_requested());
}

TEST_F(HoldTest, AnUnknownAnswerNeverExtendsIt) {
    auto held = must(hold(store_, name_, short_lease()));
    const Boottime deadline = held.deadline();
    store_.lose_answers(1000);
    log_.await(lost);
    EXPECT_EQ(held.deadline(), deadline);
}

TEST_F(HoldTest, HearsThatItWasBroken) {
    auto held = must(hold(store_, name_, short_lease(600ms)));
    must(inner_->apply_one(Break{name_, held.credentials().lock_id, "operator", "stuck"}, soon()));
    log_.await(lost);
    EXPECT_THAT(log_.kinds(), testing::IsSupersetOf({broken, lost}));
    EXPECT_EQ(held.loss()->code, Errc::lock_not_held);
    EXPECT_THAT(held.release(), RefusedWith(Errc::lock_not_held));
}

TEST_F(HoldTest, HearsThatItWasHandedOver) {
    auto held = must(hold(store_, name_, short_lease(600ms)));
    must(inner_->apply_one(Transfer{name_, held.credentials(), {"bob", ""}, Credentials::random(), ""}, soon()));
    log_.await(lost);
    EXPECT_THAT(log_.kinds(), testing::IsSupersetOf({transferred, lost}));
}

TEST_F(HoldTest, EndsAtItsLongestHold) {
    auto options = short_lease();
    options.max_hold = 500ms;
    auto held = must(hold(store_, name_, options));
    log_.await(lost);
    EXPECT_EQ(held.loss()->code, Errc::lock_expired);
    EXPECT_LE(held.lease().expires_at, *held.lease().max_until);
}

TEST_F(HoldTest, IsTrustedNoLongerThanItsLongestHoldHoweverLongItsTtlIs) {
    auto options = short_lease(60s);
    options.max_hold = 10s;
    auto held = must(hold(store_, name_, options));
    EXPECT_LT(held.deadline(), host_clock().boottime() + 10s);
}

TEST_F(HoldTest, SeveralAreTrustedNoLongerThanTheOneThatEndsFirst) {
    const auto group = must(hold_all({{&store_, lock("a"), short_lease(60s)},
                                      {&store_, lock("b"), short_lease(10s)},
                                      {&store_, lock("c"), short_lease(90s)}}));
    EXPECT_EQ(group.deadline(), group.find(lock("b"))->deadline());
}

TEST_F(HoldTest, WithoutRenewalEndsAfterOneTtl) {
    auto options = short_lease();
    options.renew = false;
    auto held = must(hold(store_, name_, options));
    log_.await(lost);
    EXPECT_EQ(held.lease().renew_seq, 0U);
}

TEST_F(HoldTest, FindsItsGrantWhenTheAnswerWasLost) {
    store_.lose_answers(1);
    auto options = short_lease(10s);
    options.wait = 5s;
    auto held = must(hold(store_, name_, options));
    EXPECT_EQ(look(name_).lease->lock_id, held.credentials().lock_id);
    EXPECT_EQ(held.token(), look(name_).token);
}

TEST_F(HoldTest, ReleaseIsRepeatedWhenItsAnswerWasLost) {
    auto held = must(hold(store_, name_, short_lease(10s)));
    store_.lose_answers(1);
    EXPECT_THAT(held.release(), Granted());
    EXPECT_EQ(look(name_).state, LockState::free);
}

TEST_F(HoldTest, TriesAgainAsOftenAsItWasTold) {
    must(inner_->apply_one(by_bob(name_), soon()));
    auto options = short_lease();
    options.retry = {3, 5ms, Growth::linear};
    EXPECT_THAT(hold(store_, name_, options), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(store_.applied(), 4);
    EXPECT_EQ(look(name_).waiters, 0U) << "a caller that does not queue left a ticket";
    EXPECT_THAT(log_.kinds(), ElementsAre(acquiring, blocked)) << "it was one lease all the time";
}

TEST_F(HoldTest, WithLockGivesTheValueOfTheWorkAndReleases) {
    const auto doubled = with_lock(store_, name_, short_lease(10s), [&](Hold& held) {
        EXPECT_EQ(look(name_).token, held.token());
        return 21 * 2;
    });
    EXPECT_EQ(must(doubled), 42);
    EXPECT_EQ(look(name_).state, LockState::free);
}

TEST_F(HoldTest, WithLockGivesTheResultOfTheWorkAsItIs) {
    const Result<int> value = with_lock(store_, name_, short_lease(10s), [](Hold&) -> Result<int> { return 42; });
    EXPECT_EQ(must(value), 42);
    const Result<void> refused =
        with_lock(store_, name_, short_lease(10s), [](Hold&) -> Result<void> { return fail(Errc::denied, "no"); });
    EXPECT_THAT(refused, RefusedWith(Errc::denied));
    EXPECT_EQ(look(name_).state, LockState::free);
}

TEST_F(HoldTest, WithLockDropsTheValueOfWorkThatLostItsLock) {
    const auto result = with_lock(store_, name_, short_lease(600ms), [&](Hold& held) {
        must(inner_->apply_one(Break{name_, held.credentials().lock_id, "operator", ""}, soon()));
        log_.await(lost);
        return 42;
    });
    EXPECT_THAT(result, RefusedWith(Errc::lock_not_held));
}

}  // namespace
}  // namespace holdfast::tests
