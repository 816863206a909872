// One screen edits a project; what the others are told; and a switch without a gap.
#include "guards/edit/edit_fixture.hpp"
#include "holdfast/edit.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

TEST(ProjectLocksTest, TheNameOfAProjectReachesNoOtherLock) {
    const auto locks = must(ProjectLocks::of("42"));
    EXPECT_EQ(locks.edit.text(), "project/42/edit");
    EXPECT_EQ(locks.propagation.text(), "project/42/propagation");
    EXPECT_EQ(locks.validation.text(), "project/42/validation");
    for (const std::string_view name : {"", "1/edit", "/", "..", "a\nb"})
        EXPECT_THAT(ProjectLocks::of(name), RefusedWith(Errc::name_invalid)) << name;
}

TEST(ScreenTest, TwoTabsWithOneDashboardAreTwoHolders) {
    const Screen first{"architecture", "tab-1", "ana"};
    const Screen second{"architecture", "tab-2", "ana"};
    EXPECT_NE(first.holder(), second.holder());
    EXPECT_EQ(Screen::of(first.holder()), first);
    EXPECT_EQ(Screen::of({"a#b#c", ""}), (Screen{"a#b", "c", ""}));
    EXPECT_EQ(Screen::of({"by hand", "ops"}), (Screen{"by hand", "", "ops"}));
}

class EditGuardTest : public EditFixture {};

TEST_F(EditGuardTest, OneScreenEditsAProjectAndTheOthersAreToldWhich) {
    const auto ana = must(open("architecture", "ana"));
    const auto refused = open("techstack", "ben");
    ASSERT_THAT(refused, RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(Screen::of(refused.error().holder->lease->holder).dashboard, "architecture");
    EXPECT_EQ(refused.error().holder->lease->holder.user, "ana");
    EXPECT_THAT(open("architecture", "ana"), RefusedWith(Errc::lock_conflict)) << "a second tab of the same user";

    const auto other = must(ProjectLocks::of("2"));
    EXPECT_THAT(guard_.open(other, Credentials::random(), {"architecture", "x", "ben"}, "", soon()), Granted());

    EXPECT_THAT(guard_.close(locks_, ana.as, soon()), Granted());
    EXPECT_THAT(guard_.close(locks_, ana.as, soon()), Granted()) << "a repeat is harmless";
    EXPECT_THAT(open("techstack", "ben"), Granted());
}

TEST_F(EditGuardTest, ASessionLastsHalfAnHourFromEachRenewalAndTwoHoursAtTheMost) {
    const auto ana = must(open("architecture", "ana"));
    const Instant start = clock_.wall();
    EXPECT_EQ(ana.lock.lease->expires_at, start + 30min);
    for (int renewals = 0; renewals < 23; ++renewals) {
        clock_.advance(guard_.times().renew_every);
        EXPECT_THAT(guard_.renew(locks_, ana.as, soon()), Granted());
    }
    EXPECT_EQ(look().lease->expires_at, start + 2h);
    clock_.advance(5min);
    EXPECT_THAT(guard_.renew(locks_, ana.as, soon()), RefusedWith(Errc::lock_expired));
    EXPECT_THAT(open("techstack", "ben"), Granted());
}

TEST_F(EditGuardTest, ASwitchKeepsTheProjectLockedWithoutAGap) {
    auto held = must(open("dashboard 0", "ana"));
    std::atomic<bool> over = false;
    std::atomic<int> tries = 0;
    std::atomic<int> slipped_in = 0;
    std::jthread other([&] {
        while (!over) {
            if (open("other", "ben")) ++slipped_in;
            ++tries;
        }
    });
    for (int switches = 1; switches <= 200 || tries < 200; ++switches) {
        const auto next = Credentials::random();
        const Screen screen{"dashboard " + std::to_string(switches), "tab", "ana"};
        const FencingToken before = held.lock.token;
        held = must(guard_.switch_to(locks_, held.as, next, screen, soon()));
        EXPECT_GT(held.lock.token, before);
        EXPECT_EQ(held.lock.lease->holder, screen.holder());
    }
    over = true;
    other.join();
    EXPECT_EQ(slipped_in, 0);
}

TEST_F(EditGuardTest, AnActiveSessionIsHandedOverByApprovalOnly) {
    const auto ana = must(open("architecture", "ana"));
    const auto wanted = Credentials::random();
    const Screen ben{"techstack", "tab-b", "ben"};
    const auto asked = must(guard_.ask(locks_, wanted, ben, "release today", lasting(5min), soon()));
    const LockId ask_id = asked.override_request->lock_id;
    EXPECT_THAT(guard_.answer(locks_, ask_id, Verdict::approve, "ben", wanted, soon()), RefusedWith(Errc::denied))
        << "an asker cannot approve as the holder";
    EXPECT_THAT(guard_.answer(locks_, ask_id, Verdict::deny, "ana", ana.as, soon()), Granted());
    EXPECT_EQ(look().lease->lock_id, ana.as.lock_id);

    const auto again = Credentials::random();
    must(guard_.ask(locks_, again, ben, "please", lasting(5min), soon()));
    const auto approved = must(guard_.answer(locks_, again.lock_id, Verdict::approve, "olga", std::nullopt, soon()));
    EXPECT_EQ(approved.lease->lock_id, again.lock_id);
    EXPECT_EQ(approved.lease->max_until, clock_.wall() + 2h);
    EXPECT_THAT(guard_.renew(locks_, ana.as, soon()), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(guard_.renew(locks_, again, soon()), Granted());
}

TEST_F(EditGuardTest, TheValidationLockIsHeldForSecondsAndNobodyWaitsForIt) {
    auto first = must(guard_.validate(locks_, {"worker 1", ""}));
    EXPECT_EQ(first.lease().expires_at, clock_.wall() + 10s);
    EXPECT_THAT(guard_.validate(locks_, {"worker 2", ""}), RefusedWith(Errc::lock_conflict));
    clock_.advance(10s);
    EXPECT_THAT(guard_.validate(locks_, {"worker 2", ""}), Granted());
    first.abandon();
}

}  // namespace
}  // namespace holdfast::tests
