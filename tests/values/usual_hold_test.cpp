// How long a lock is usually held, from events that are written down here.

#include "values/usual_hold.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

class Log {
public:
    LockId lease(std::chrono::milliseconds held, EventKind begin = EventKind::acquired,
                 EventKind end = EventKind::released) {
        const LockId lock_id = LockId::random();
        add(begin, lock_id);
        now_ += held;
        add(end, lock_id);
        now_ += 1s;
        return lock_id;
    }
    AuditEvent& add(EventKind kind, const LockId& lock_id) {
        AuditEvent event{.name = *LockName::parse("a")};
        event.seq = events.size() + 1;
        event.kind = kind;
        event.lock_id = lock_id;
        event.at = now_;
        return events.emplace_back(std::move(event));
    }
    void pass(milliseconds time) { now_ += time; }
    [[nodiscard]] Instant now() const { return now_; }
    [[nodiscard]] std::optional<UsualHold> usual() const {
        CompletedHolds holds;
        holds.add_older(events);
        return holds.usual();
    }

    std::vector<AuditEvent> events;

private:
    Instant now_{1'800'000'000'000ms};
};

TEST(UsualHoldTest, OfFewerThanFiveHoldsNothingIsSaid) {
    Log log;
    for (int i = 0; i < 4; ++i) log.lease(1min);
    EXPECT_FALSE(log.usual());
    log.lease(1min);
    ASSERT_TRUE(log.usual());
    EXPECT_EQ(log.usual()->samples(), 5U);
}

TEST(UsualHoldTest, TellsTheMiddleAndTheLongOnes) {
    Log log;
    for (int minutes = 1; minutes <= 20; ++minutes) log.lease(std::chrono::minutes{minutes});
    EXPECT_EQ(log.usual()->p50(), 10min);
    EXPECT_EQ(log.usual()->p95(), 19min);
}

TEST(UsualHoldTest, IsThatOfTheLastFiftyHolds) {
    Log log;
    for (int i = 0; i < 60; ++i) log.lease(1h);
    for (int i = 0; i < 50; ++i) log.lease(1min);
    EXPECT_EQ(log.usual()->samples(), 50U);
    EXPECT_EQ(log.usual()->p95(), 1min);
}

TEST(UsualHoldTest, CountsEveryWayInWhichAHoldBeginsAndEnds) {
    Log log;
    log.lease(1min, EventKind::acquired, EventKind::broken);
    // Ran out after 2 min, which was noticed an hour later.
    const LockId dead = LockId::random();
    log.add(EventKind::acquired, dead);
    const std::string expired_at = to_rfc3339(log.now() + 2min);
    log.pass(1h);
    const LockId thief = LockId::random();
    log.add(EventKind::stolen, thief).details = {{"from_lock_id", dead.text()}, {"expired_at", expired_at}};
    log.pass(3min);
    const LockId heir = LockId::random();
    log.add(EventKind::transferred, heir).details = {{"from_lock_id", thief.text()}};
    log.pass(4min);
    const LockId asker = LockId::random();
    log.add(EventKind::override_requested, asker).details = {{"from_lock_id", heir.text()}};
    log.pass(1min);
    log.add(EventKind::override_approved, asker).details = {{"from_lock_id", heir.text()}};
    log.pass(6min);
    // The same end twice: the event that announced it, and the grant that followed.
    const std::string announced = to_rfc3339(log.now());
    log.pass(2h);
    log.add(EventKind::expired, asker).details = {{"expired_at", announced}};
    log.add(EventKind::acquired, LockId::random()).details = {{"from_lock_id", asker.text()},
                                                              {"expired_at", announced}};
    const auto usual = log.usual();
    ASSERT_TRUE(usual);
    EXPECT_EQ(usual->samples(), 5U);
    EXPECT_EQ(usual->p50(), 3min) << "1, 2, 3, 5 and 6 min";
    EXPECT_EQ(usual->p95(), 6min);
}

TEST(UsualHoldTest, FindsAHoldWhoseBeginAndEndAreOnDifferentPages) {
    Log log;
    for (int i = 0; i < 10; ++i) {
        const LockId lock_id = log.lease(1min);
        log.add(EventKind::renewed, lock_id);
    }
    for (std::size_t cut = 0; cut <= log.events.size(); ++cut) {
        CompletedHolds holds;
        const std::span<const AuditEvent> all = log.events;
        holds.add_older(all.subspan(cut));
        holds.add_older(all.first(cut));
        EXPECT_EQ(holds.usual()->samples(), 10U) << cut;
    }
}

LockStatus held_for(milliseconds time, std::uint64_t waiters = 0) {
    LockStatus status{.name = *LockName::parse("a")};
    status.state = LockState::held;
    status.as_of = Instant{1'800'000'000'000ms};
    status.lease.emplace();
    status.lease->acquired_at = status.as_of - time;
    status.waiters = waiters;
    return status;
}

TEST(UsualHoldTest, SaysWhenATurnMayCome) {
    const auto usual = UsualHold::of({2min, 4min, 6min, 8min, 50min});
    ASSERT_TRUE(usual);
    EXPECT_EQ(usual->turn_in(held_for(0min), 0), 6min);
    EXPECT_EQ(usual->turn_in(held_for(5min), 0), 3min) << "of 6, 8 and 50";
    EXPECT_EQ(usual->turn_in(held_for(41min), 0), 9min) << "one has gone on for as long";
    EXPECT_EQ(usual->turn_in(held_for(51min), 1), 12min) << "nobody knows, so as long as a usual hold";
    LockStatus over = held_for(41min);
    over.state = LockState::expired;
    EXPECT_EQ(usual->turn_in(over, 2), 12min) << "those who are ahead";
    EXPECT_GT(usual->turn_in(over, ~std::uint64_t{0}), 0min);
}

}  // namespace
}  // namespace holdfast
