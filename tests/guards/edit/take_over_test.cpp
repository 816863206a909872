// A session that nobody renews is taken over in one step, an active one never, and a renewal and a take-over that meet
// are not both granted.
#include "guards/edit/edit_fixture.hpp"
#include "support/run_settings.hpp"
#include "support/temp_folder.hpp"

#include <barrier>
#include <random>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class StaleSession : public EditFixture {
protected:
    [[nodiscard]] Result<EditGrant> take_over(const LockStatus& seen) {
        return guard_.take_over(locks_, seen, Credentials::random(), {"techstack", "tab-b", "ben"}, "ana is away",
                                soon());
    }
};

TEST_F(StaleSession, IsTakenOverAfterTenMinutesWithoutARenewalAndNotBefore) {
    const auto ana = must(open("architecture", "ana"));
    clock_.advance(10min - 1ms);
    EXPECT_FALSE(guard_.is_stale(look()));
    EXPECT_THAT(take_over(look()), RefusedWith(Errc::lock_conflict));
    clock_.advance(1ms);
    EXPECT_TRUE(guard_.is_stale(look()));
    const auto ben = must(take_over(look()));
    EXPECT_EQ(ben.stolen_from->lock_id, ana.as.lock_id);
    EXPECT_EQ(ben.lock.lease->reason, "ana is away");
    EXPECT_THAT(guard_.renew(locks_, ana.as, soon()), RefusedWith(Errc::lock_not_held));
}

TEST_F(StaleSession, IsActiveAgainWithItsNextRenewal) {
    const auto ana = must(open("architecture", "ana"));
    clock_.advance(11min);
    const LockStatus seen = look();
    ASSERT_TRUE(guard_.is_stale(seen));
    EXPECT_THAT(guard_.renew(locks_, ana.as, soon()), Granted());
    EXPECT_FALSE(guard_.is_stale(look()));
    EXPECT_THAT(take_over(seen), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(look().lease->lock_id, ana.as.lock_id);
}

TEST_F(StaleSession, IsNotTakenOverWhileItsProjectIsPropagated) {
    must(open("architecture", "ana"));
    clock_.advance(11min);
    must(store_->apply_one(by_carol(locks_.propagation, 1min), soon()));
    EXPECT_THAT(take_over(look()), RefusedWith(Errc::lock_conflict));
}

/// On a store with its own time, as in production: the race is real.
TEST(TakeOverRace, ARenewalAndATakeOverThatMeetAreNotBothGranted) {
    TempFolder folder;
    const auto store = must(open_store("sqlite:" + (folder.path() / "locks.db").string() + "?sync=off"));
    EditTimes times;
    times.stale_after = Ttl::shortest;
    EditGuard guard(*store, times);
    const auto soon = [] { return Deadline::in(host_clock(), 30s); };
    const std::uint64_t seed = seed_of("take-over race");
    std::mt19937_64 random(seed);
    int renewals = 0;
    int take_overs = 0;
    const int rounds = scaled(40);
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE(testing::Message() << "HOLDFAST_SEED=" << seed << " round " << round);
        const auto locks = must(ProjectLocks::of(std::to_string(round)));
        const auto ana = must(guard.open(locks, Credentials::random(), {"a", "1", "ana"}, "", soon()));
        LockStatus seen = must(store->inspect(locks.edit, soon()));
        while (!guard.is_stale(seen)) seen = must(store->inspect(locks.edit, soon()));

        const auto spins = random() % 20'000;
        const bool renewal_is_late = random() % 2 == 0;
        std::barrier start(2);
        const auto meet = [&](bool is_late) {
            start.arrive_and_wait();
            for (std::uint64_t i = 0; is_late && i < spins; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
        };
        Result<LockStatus> renewed = fail(Errc::usage, "");
        std::jthread holder([&] {
            meet(renewal_is_late);
            renewed = guard.renew(locks, ana.as, soon());
        });
        meet(!renewal_is_late);
        const auto taken = guard.take_over(locks, seen, Credentials::random(), {"b", "2", "ben"}, "", soon());
        holder.join();

        EXPECT_NE(renewed.has_value(), taken.has_value());
        const auto after = must(store->inspect(locks.edit, soon()));
        EXPECT_EQ(after.lease->lock_id, renewed ? ana.as.lock_id : taken->as.lock_id);
        ++(renewed ? renewals : take_overs);
    }
    RecordProperty("renewals", renewals);
    RecordProperty("take_overs", take_overs);
}

}  // namespace
}  // namespace holdfast::tests
