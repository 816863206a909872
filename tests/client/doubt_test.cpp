// Goal: a waiter whose answer was lost finds out what happened, and one lock_id never names two leases, however long
// that takes. Method: the memory store on the real clock, behind a line that loses an answer; what others do meanwhile
// happens before the loss is noticed.
#include "client/faulty_store.hpp"
#include "client/repeat.hpp"
#include "client/waiter.hpp"
#include "holdfast/open.hpp"
#include "support/matchers.hpp"
#include "support/requests.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <set>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class DoubtTest : public testing::Test {
protected:
    /// Asks until the lock is granted. The first answer is lost, and before that `meanwhile` happens.
    [[nodiscard]] client::Granted ask(const Acquire& wanted, const std::function<void()>& meanwhile) {
        store_.lose_answers(1);
        store_.before_answers([&, happened = false]() mutable {
            if (!std::exchange(happened, true)) meanwhile();
        });
        return must(client::acquire_in_turn(store_, wanted, host_clock(), {}));
    }

    void passes_through(const Acquire& other) {
        must(inner_->apply_one(other, Deadline::never()));
        must(inner_->apply_one(release(other), Deadline::never()));
    }

    void wait_until_expired() {
        while (must(inner_->inspect(name_, Deadline::never())).state != LockState::expired) std::this_thread::yield();
    }

    void expect_one_lease_for_each_lock_id() {
        std::multiset<LockId> granted;
        for (const AuditEvent& event : must(inner_->history({.name = name_}, Deadline::never())))
            if (event.kind == EventKind::acquired || event.kind == EventKind::stolen) granted.insert(event.lock_id);
        for (const LockId& lock_id : granted) EXPECT_EQ(granted.count(lock_id), 1U) << lock_id.text();
    }

    std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    const LockName name_ = lock("x");
};

TEST_F(DoubtTest, AskingAgainFindsTheGrantWhoseAnswerWasLost) {
    const Acquire alice = by_alice(name_, 1min);
    const client::Granted granted = ask(alice, [] {});
    EXPECT_EQ(granted.as.lock_id, alice.as.lock_id);
    expect_one_lease_for_each_lock_id();
}

TEST_F(DoubtTest, AGrantThatRanOutUnheardIsNotRepeatedAfterOthersHeldTheLock) {
    const Acquire alice = by_alice(name_, 100ms);
    const client::Granted granted = ask(alice, [&] {
        wait_until_expired();
        passes_through(by_bob(name_));
        passes_through(by_carol(name_));
    });
    EXPECT_NE(granted.as.lock_id, alice.as.lock_id);
    EXPECT_EQ(granted.lock.lease->lock_id, granted.as.lock_id);
    expect_one_lease_for_each_lock_id();
}

TEST_F(DoubtTest, AQuestionThatIsHeldUpUntilItsGrantWasForgottenIsNotAnswered) {
    // It left while the lease was there: only a store that looks at the deadline when it decides can tell.
    store_.before_calls([&, calls = 0]() mutable {
        if (++calls != 2) return;
        wait_until_expired();
        passes_through(by_bob(name_));
        passes_through(by_carol(name_));
    });
    const Acquire alice = by_alice(name_, 1s);
    const client::Granted granted = ask(alice, [] {});
    EXPECT_NE(granted.as.lock_id, alice.as.lock_id);
    expect_one_lease_for_each_lock_id();
}

TEST_F(DoubtTest, AGrantThatWasBrokenUnheardDoesNotEndTheWait) {
    const Acquire alice = by_alice(name_, 1min);
    const client::Granted granted = ask(alice, [&] {
        must(inner_->apply_one(Break{name_, alice.as.lock_id, "operator", "stuck"}, Deadline::never()));
    });
    EXPECT_NE(granted.as.lock_id, alice.as.lock_id);
    expect_one_lease_for_each_lock_id();
}

TEST_F(DoubtTest, RotatedCredentialsLeaveNoPlaceInTheQueue) {
    const Acquire bob = by_bob(name_, 200ms);
    must(inner_->apply_one(bob, Deadline::never()));
    // The lost answer was a refusal, which left a ticket that would keep everybody else out.
    const Acquire alice = queued(by_alice(name_, 100ms), 1h);
    const client::Granted granted = ask(alice, [&] { wait_until_expired(); });
    EXPECT_NE(granted.as.lock_id, alice.as.lock_id);
    EXPECT_EQ(must(inner_->inspect(name_, Deadline::never())).waiters, 0U);
}

TEST_F(DoubtTest, GivingUpWithFormerCredentialsInDoubtIsOutcomeUnknown) {
    store_.lose_answers(1);
    store_.before_answers([&] {
        wait_until_expired();
        store_.cut();
    });
    const client::Patience short_one{.deadline = Deadline::in(host_clock(), 300ms)};
    EXPECT_THAT(client::acquire_in_turn(store_, by_alice(name_, 100ms), host_clock(), short_one),
                RefusedWith(Errc::outcome_unknown));
}

TEST_F(DoubtTest, ALeaseThatWasHandedOverIsExtendedAndNotAskedForAgain) {
    const Acquire bob = by_bob(name_, 1h);
    must(inner_->apply_one(bob, Deadline::never()));
    const Acquire alice = queued(by_alice(name_, 1h), 10min);
    std::jthread releases([&] {
        while (must(inner_->inspect(name_, Deadline::never())).waiters == 0) std::this_thread::yield();
        must(inner_->apply_one(release(bob), Deadline::never()));
    });
    const client::Granted granted = must(client::acquire_in_turn(store_, alice, host_clock(), {}));
    EXPECT_EQ(granted.lock.lease->expires_at - granted.lock.lease->renewed_at, 1h);
    EXPECT_EQ(store_.acquires(), 1);
    expect_one_lease_for_each_lock_id();
}

/// A waiter after Bob in the queue, which is not woken when Bob hands it the lock.
class UnheardHandOnTest : public DoubtTest {
protected:
    [[nodiscard]] client::Granted wait(const Acquire& wanted, const std::function<void()>& meanwhile) {
        must(inner_->apply_one(bob_, Deadline::never()));
        store_.instead_of_waits([&, happened = false]() mutable {
            if (std::exchange(happened, true)) return;
            must(inner_->apply_one(release(bob_), Deadline::never()));
            EXPECT_EQ(must(inner_->inspect(name_, Deadline::never())).lease->lock_id, wanted.as.lock_id);
            meanwhile();
        });
        return must(client::acquire_in_turn(store_, wanted, host_clock(), {}));
    }

    /// The lease runs out, and two others hold the lock meanwhile, so that the store has forgotten it.
    void expect_another_after_its_end(const Acquire& alice) {
        const client::Granted granted = wait(alice, [&] {
            wait_until_expired();
            passes_through(by_carol(name_));
            passes_through(by("dave", name_, 1s));
        });
        EXPECT_NE(granted.as.lock_id, alice.as.lock_id);
        expect_one_lease_for_each_lock_id();
    }

    const Acquire bob_ = by_bob(name_, 1h);
};

TEST_F(UnheardHandOnTest, AskingAgainFindsIt) {
    const Acquire alice = queued(by_alice(name_, 1min), 1min);
    const client::Granted granted = wait(alice, [] {});
    EXPECT_EQ(granted.as.lock_id, alice.as.lock_id);
    EXPECT_EQ(granted.lock.lease->expires_at - granted.lock.lease->renewed_at, 1min);
    expect_one_lease_for_each_lock_id();
}

TEST_F(UnheardHandOnTest, ALeaseThatRanOutUnheardIsNotRepeatedAfterOthersHeldTheLock) {
    expect_another_after_its_end(queued(by_alice(name_, 1min), 100ms));
}

TEST_F(UnheardHandOnTest, ALeaseThatRanOutAtItsLongestHoldIsNotRepeatedEither) {
    Acquire alice = queued(by_alice(name_, 1min), 1min);
    alice.max_hold = 100ms;
    expect_another_after_its_end(alice);
}

TEST_F(UnheardHandOnTest, ALeaseThatWasBrokenUnheardDoesNotEndTheWait) {
    const Acquire alice = queued(by_alice(name_, 1min), 1min);
    const client::Granted granted = wait(alice, [&] {
        must(inner_->apply_one(Break{name_, alice.as.lock_id, "operator", "stuck"}, Deadline::never()));
    });
    EXPECT_NE(granted.as.lock_id, alice.as.lock_id);
    expect_one_lease_for_each_lock_id();
}

TEST_F(UnheardHandOnTest, GivingUpWithoutTheStoreIsOutcomeUnknown) {
    must(inner_->apply_one(bob_, Deadline::never()));
    store_.instead_of_waits([&] {
        must(inner_->apply_one(release(bob_), Deadline::never()));
        store_.cut();
    });
    const client::Patience short_one{.deadline = Deadline::in(host_clock(), 0ms)};
    EXPECT_THAT(client::acquire_in_turn(store_, queued(by_alice(name_, 1min), 1min), host_clock(), short_one),
                RefusedWith(Errc::lock_conflict))
        << "who does not wait leaves in time";
    const client::Patience longer{.deadline = Deadline::in(host_clock(), 300ms)};
    EXPECT_THAT(client::acquire_in_turn(store_, queued(by_alice(name_, 1min), 1min), host_clock(), longer),
                RefusedWith(Errc::outcome_unknown));
}

class RepeatTest : public testing::Test {
protected:
    [[nodiscard]] Reply apply(const Request& request) {
        return client::apply_or_repeat(store_, request, host_clock(), 20s);
    }

    const std::unique_ptr<Store> inner_ = must(open_store("memory:"));
    FaultyStore store_{*inner_};
    const Acquire alice_ = by_alice(lock("x"));
};

TEST_F(RepeatTest, ALostAnswerIsAskedForOnceMore) {
    store_.lose_answers(1);
    EXPECT_THAT(apply(alice_), Granted());
    EXPECT_EQ(store_.applied(), 2);
}

TEST_F(RepeatTest, WhatMayHaveBeenDoneStaysUnknownIfTheStoreIsAwayThen) {
    store_.lose_answers(1);
    store_.before_answers([&] { store_.cut(); });
    EXPECT_THAT(apply(alice_), RefusedWith(Errc::outcome_unknown));
    EXPECT_EQ(must(inner_->inspect(lock("x"), Deadline::never())).state, LockState::held);
}

TEST_F(RepeatTest, ABreakIsSentOnce) {
    must(inner_->apply_one(alice_, Deadline::never()));
    store_.lose_answers(1);
    EXPECT_THAT(apply(Break{lock("x"), alice_.as.lock_id, "root", "stuck"}), RefusedWith(Errc::outcome_unknown));
    EXPECT_EQ(store_.applied(), 1);
}

}  // namespace
}  // namespace holdfast::tests
