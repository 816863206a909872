// Deadlines on a host's clock: whatever is done to the wall clock, a lease lasts its ttl in real time.

#include "kernel/rebase.hpp"

#include "kernel/little_store.hpp"

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using kernel::ClockMark;
using kernel::mark_of;
using kernel::rebase;
using kernel::Record;
using kernel::Ticket;

class RebaseTest : public testing::Test {
protected:
    RebaseTest() : record_(kernel::blank(lock("migrate/prod"))), ticket_{} {
        Lease lease;
        lease.ttl = 30s;
        lease.acquired_at = lease.renewed_at = clock_.wall();
        lease.expires_at = clock_.wall() + 30s;
        lease.max_until = clock_.wall() + 1h;
        record_.held = kernel::HeldLease{lease, {}};
        record_.pending = kernel::PendingAsk{{{}, {"bob", ""}, "", 20s, clock_.wall(), clock_.wall() + 60s}, {}};
        ticket_.enqueued_at = clock_.wall();
        ticket_.expires_at = clock_.wall() + 10s;
        then_ = mark_of(clock_);
    }

    [[nodiscard]] Record now_record() const { return rebase(record_, then_, mark_of(clock_), clock_.wall()); }
    [[nodiscard]] Ticket now_ticket() const { return rebase(ticket_, then_, mark_of(clock_), clock_.wall()); }
    [[nodiscard]] std::chrono::milliseconds left() const { return now_record().held->lease.expires_at - clock_.wall(); }

    ManualClock clock_;
    Record record_;
    Ticket ticket_;
    ClockMark then_;
};

TEST_F(RebaseTest, NothingMovesWhileOnlyTimePasses) {
    clock_.advance(20s);
    EXPECT_EQ(now_record(), record_);
    EXPECT_EQ(now_ticket(), ticket_);
}

TEST_F(RebaseTest, AStepInEitherDirectionMovesEveryDeadlineWithIt) {
    for (const auto step : {std::chrono::milliseconds{1h}, std::chrono::milliseconds{-1h}}) {
        const Record before = now_record();
        const Ticket ticket_before = now_ticket();
        clock_.step_wall(step);
        const Record after = now_record();
        EXPECT_EQ(after.held->lease.expires_at, before.held->lease.expires_at + step);
        EXPECT_EQ(after.held->lease.max_until, *before.held->lease.max_until + step);
        EXPECT_EQ(after.pending->ask.expires_at, before.pending->ask.expires_at + step);
        EXPECT_EQ(now_ticket().expires_at, ticket_before.expires_at + step);
    }
}

TEST_F(RebaseTest, ALeaseLastsAsLongAsItWouldHaveWithoutTheStep) {
    clock_.advance(10s);
    clock_.step_wall(5min);
    EXPECT_EQ(left(), 20s);
    clock_.step_wall(-48h);
    clock_.advance(15s);
    EXPECT_EQ(left(), 5s);
    clock_.advance(5s);
    EXPECT_EQ(left(), 0s);
}

TEST_F(RebaseTest, NoiseBelowATenthOfASecondIsNoStep) {
    for (const auto noise : {99ms, -99ms}) {
        clock_.step_wall(noise);
        EXPECT_EQ(now_record(), record_);
        EXPECT_EQ(now_ticket(), ticket_);
        clock_.step_wall(-noise);
    }
    clock_.step_wall(100ms);
    EXPECT_EQ(now_record().held->lease.expires_at, record_.held->lease.expires_at + 100ms);
    clock_.step_wall(-200ms);
    EXPECT_EQ(now_record().held->lease.expires_at, record_.held->lease.expires_at - 100ms);
}

// Found by fuzzing the record file: the difference of two marks overflowed.
TEST_F(RebaseTest, AMarkThatNoClockCanHaveIsTakenForAFarStep) {
    then_.offset = std::chrono::milliseconds::min();
    EXPECT_GT(left(), 1h);
    then_.offset = std::chrono::milliseconds::max();
    EXPECT_LT(left(), -1h);
}

TEST_F(RebaseTest, ALeaseOutlivesAReboot) {
    clock_.advance(10s);
    clock_.reboot();
    EXPECT_EQ(left(), 20s);
}

TEST_F(RebaseTest, AfterARebootWithoutTheDateALeaseLastsOneMoreTtlAtTheMost) {
    clock_.reboot();
    clock_.step_wall(-std::chrono::days{10'000});
    EXPECT_EQ(left(), 30s);
    EXPECT_EQ(now_record().pending->ask.expires_at, clock_.wall() + 60s);
}

TEST_F(RebaseTest, TicketsDieWithTheBootTheyWereTakenIn) {
    clock_.reboot();
    EXPECT_LE(now_ticket().expires_at, clock_.wall());
    clock_.step_wall(-std::chrono::days{10'000});
    EXPECT_LE(now_ticket().expires_at, clock_.wall());
}

TEST_F(RebaseTest, AFreeRecordHasNothingToMove) {
    record_.held.reset();
    record_.pending.reset();
    clock_.step_wall(1h);
    EXPECT_EQ(now_record(), record_);
    clock_.reboot();
    EXPECT_EQ(now_record(), record_);
}

/// The host's clock as a process sees it that is stopped once, right after a reading.
class StutteringClock final : public Clock {
public:
    [[nodiscard]] Instant wall() const override { return paused(clock_.wall()); }
    [[nodiscard]] Boottime boottime() const override { return paused(clock_.boottime()); }
    [[nodiscard]] std::string boot_id() const override { return clock_.boot_id(); }

    void pause_after_reading(int reading) { left_ = reading; }
    [[nodiscard]] const ManualClock& steady() const { return clock_; }

private:
    template <class Time>
    Time paused(Time time) const {
        if (--left_ == 0) clock_.advance(20s);
        return time;
    }
    mutable ManualClock clock_;
    mutable int left_ = 0;
};

TEST(ClockMarkTest, APauseBetweenTwoReadingsIsNotTakenForAStep) {
    StutteringClock clock;
    const ClockMark undisturbed = mark_of(clock.steady());
    for (int reading = 1; reading <= 4; ++reading) {
        clock.pause_after_reading(reading);
        EXPECT_EQ(mark_of(clock), undisturbed) << "paused after reading " << reading;
    }
}

}  // namespace
}  // namespace holdfast::tests
