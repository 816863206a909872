// Leases that ran out and that nobody asks for are ended, once, and their locks go to whoever waits.
#include "client/sweeper.hpp"

#include "client/faulty_store.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class SweeperTest : public testing::Test {
protected:
    [[nodiscard]] std::size_t count(const LockName& name, EventKind kind) {
        const auto events = must(inner_->history({.name = name}, Deadline::never()));
        return static_cast<std::size_t>(std::ranges::count(events, kind, &AuditEvent::kind));
    }
    void take(const LockName& name, std::chrono::milliseconds ttl) {
        ASSERT_THAT(inner_->apply_one(by_alice(name, ttl), Deadline::never()), Granted());
    }
    client::Swept sweep(client::Sweeper& sweeper) { return must(sweeper.sweep({})); }

    ManualClock clock_;
    std::unique_ptr<Store> inner_ = must(open_store("memory:", clock_));
    FaultyStore store_{*inner_};
    client::Sweeper sweeper_{store_};
    const LockName name_ = lock("deploy/web");
};

TEST_F(SweeperTest, EndsWhatRanOutAndNothingElse) {
    take(name_, 10s);
    take(lock("long"), 1h);
    EXPECT_EQ(sweep(sweeper_).ended, 0U);
    clock_.advance(10s);
    const client::Swept swept = sweep(sweeper_);
    EXPECT_EQ(swept.ended, 1U);
    EXPECT_EQ(swept.locks, 2U);
    EXPECT_EQ(count(name_, EventKind::expired), 1U);
    EXPECT_EQ(count(lock("long"), EventKind::expired), 0U);
}

TEST_F(SweeperTest, AnnouncesALeaseOnceHoweverOftenAndByHoweverManyItIsSeen) {
    take(name_, 10s);
    clock_.advance(1min);
    client::Sweeper other(store_);
    EXPECT_EQ(sweep(sweeper_).ended + sweep(other).ended + sweep(sweeper_).ended + sweep(other).ended, 1U);
    EXPECT_EQ(count(name_, EventKind::expired), 1U);
    const Acquire next = by_bob(name_, 10s);
    ASSERT_THAT(inner_->apply_one(next, Deadline::never()), Granted());
    clock_.advance(10s);
    EXPECT_EQ(sweep(sweeper_).ended, 1U) << "another lease of the same lock";
    EXPECT_EQ(count(name_, EventKind::expired), 2U);
}

TEST_F(SweeperTest, SeveralAtTheSameMomentAnnounceEachLeaseOnce) {
    constexpr std::size_t locks = 200;
    for (std::size_t i = 0; i < locks; ++i) take(lock("l/" + std::to_string(i)), 10s);
    clock_.advance(10s);
    std::atomic<std::size_t> ended = 0;
    {
        std::vector<std::jthread> daemons;
        for (int i = 0; i < 4; ++i)
            daemons.emplace_back([&] {
                client::Sweeper sweeper(*inner_);
                ended += must(sweeper.sweep({})).ended;
            });
    }
    EXPECT_EQ(ended, locks);
    for (std::size_t i = 0; i < locks; ++i) EXPECT_EQ(count(lock("l/" + std::to_string(i)), EventKind::expired), 1U);
}

TEST_F(SweeperTest, HandsTheLockToTheFirstWaiter) {
    take(name_, 10s);
    Acquire bob = by_bob(name_, 10s);
    bob.ticket = *Ttl::of(1h);
    ASSERT_THAT(inner_->apply_one(bob, Deadline::never()), testing::Not(Granted()));
    clock_.advance(10s);
    EXPECT_EQ(sweep(sweeper_).ended, 1U);
    const LockStatus status = must(inner_->inspect(name_, Deadline::never()));
    ASSERT_TRUE(status.lease);
    EXPECT_EQ(status.lease->lock_id, bob.as.lock_id);
}

TEST_F(SweeperTest, ShowsEveryLockThatIsNotFree) {
    constexpr std::size_t locks = 1200;
    for (std::size_t i = 0; i < locks; ++i) take(lock("l/" + std::to_string(i)), 1h);
    std::size_t seen = 0;
    EXPECT_EQ(must(sweeper_.sweep({}, [&](std::span<const LockStatus> page) { seen += page.size(); })).locks, locks);
    EXPECT_EQ(seen, locks);
}

TEST_F(SweeperTest, ComesBackAfterAnError) {
    take(name_, 10s);
    clock_.advance(10s);
    store_.cut();
    EXPECT_FALSE(sweeper_.sweep({}));
    store_.heal();
    store_.lose_answers(1);
    const auto unknown = sweeper_.sweep({});
    EXPECT_EQ(unknown ? Errc::usage : unknown.error().code, Errc::outcome_unknown);
    EXPECT_EQ(sweep(sweeper_).ended, 0U) << "it was the first one that counted";
    EXPECT_EQ(count(name_, EventKind::expired), 1U);
}

TEST_F(SweeperTest, StopsWhenItIsAsked) {
    take(name_, 10s);
    clock_.advance(10s);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(must(sweeper_.sweep(stop.get_token())).locks, 0U);
}

}  // namespace
}  // namespace holdfast::tests
