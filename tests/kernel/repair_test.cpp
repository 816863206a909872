// What a Repair makes of a lock of which something cannot be read.

#include "kernel/step.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gtest/gtest.h>

namespace holdfast::kernel {
namespace {

using namespace std::chrono_literals;
using namespace holdfast::tests;

const Instant now{1'800'000'000'000ms};

State damaged(Damage damage) { return {blank(lock("x")), {}, {}, std::move(damage)}; }
Decision repaired(const State& state) { return step(state, Repair{lock("x"), "ops", "why"}, now); }

TEST(RepairTest, GivesATokenAboveWhatIsKnownAndAboveTheClock) {
    const auto token_after = [](std::uint64_t known) {
        return repaired(damaged({.what = "the record", .token = {known}})).record->token.value;
    };
    EXPECT_EQ(token_after(0), 1'800'000'000'000U);
    EXPECT_EQ(token_after(1'800'000'000'000), 1'800'000'000'001U);
    EXPECT_EQ(token_after(1'900'000'000'000), 1'900'000'000'001U) << "the clock was put back";
}

TEST(RepairTest, GoesOnWithTheLogThatIsLeft) {
    AuditEvent event{.name = lock("x")};
    event.seq = 7;
    event.token = {42};
    event.hash.fill(9);
    Damage damage{.what = "the record", .bytes = {1, 2, 255}};
    damage.saw_newest(event);
    event.seq = 5;
    damage.saw_oldest(event);
    const Decision decision = repaired(damaged(damage));
    ASSERT_THAT(decision.reply, Granted());
    EXPECT_FALSE(decision.record->held);
    EXPECT_TRUE(decision.clears_queue);
    EXPECT_EQ(decision.record->pruned_seq, 4U);
    ASSERT_EQ(decision.events.size(), 1U);
    EXPECT_EQ(decision.events[0].seq, 8U);
    EXPECT_EQ(decision.events[0].prev_hash, event.hash);
    EXPECT_EQ(decision.events[0].details.at("damaged"), "0102ff");
}

TEST(RepairTest, KeepsALeaseThatCanBeRead) {
    Record record = blank(lock("x"));
    record.token = {5};
    record.seq = 3;
    record.held.emplace();
    record.held->lease.token = {5};
    record.held->lease.expires_at = now + 1min;
    const Decision decision = repaired(damaged({.what = "the queue", .record = record}));
    EXPECT_EQ(decision.record->held, record.held);
    EXPECT_EQ(decision.record->token, record.token);
    EXPECT_EQ(decision.record->seq, 4U);
    EXPECT_TRUE(decision.clears_queue);
}

TEST(RepairTest, ChangesNothingWhereEverythingCanBeRead) {
    State state{blank(lock("x"))};
    state.record.seq = 3;
    const Decision decision = repaired(state);
    EXPECT_THAT(decision.reply, Granted());
    EXPECT_FALSE(decision.record);
    EXPECT_FALSE(decision.clears_queue);
    EXPECT_TRUE(decision.events.empty());
}

TEST(RepairTest, NeedsAnActorAndKeepsNoMoreThanSoManyBytes) {
    EXPECT_THAT(step(State{blank(lock("x"))}, Repair{lock("x"), "", ""}, now).reply, RefusedWith(Errc::usage));
    const Decision decision =
        repaired(damaged({.what = "the record", .bytes = std::vector<std::uint8_t>(1'000'000, 7)}));
    EXPECT_LE(decision.events[0].details.at("damaged").size(), 70'000U);
    EXPECT_EQ(decision.events[0].details.at("damaged_size"), "1000000");
}

}  // namespace
}  // namespace holdfast::kernel
