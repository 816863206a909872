// Goal: a change that is decided before the lock was read is right, or is not made. Method: what was guessed is altered
// behind the store's back. Which way a change went shows in its row: what is written first in a transaction, without a
// look before it, has the command number 0 there.
#include "stores/postgres_fixture.hpp"

#include <atomic>
#include <thread>

namespace holdfast::tests {
namespace {

class PostgresOptimistic : public PostgresFixture {
protected:
    PostgresOptimistic() { must(store_->apply_one(by_alice(lock("first")), soon())); }

    [[nodiscard]] bool was_guessed(const LockName& name) {
        return by_hand_("SELECT cmin FROM " + row_of_lock(name)) == "0";
    }
    [[nodiscard]] std::string events() { return by_hand_("SELECT count(*) FROM " + schema_ + ".audit"); }

    /// A `wait_for_change` with the ticket returns this.
    void call(const Acquire& waiting) {
        by_hand_("SELECT pg_notify('holdfast_' || replace('" + waiting.as.lock_id.text() + "', '-', ''), '')");
    }

    /// Bob was handed the lock and knows it; Carol waits.
    struct Line {
        std::unique_ptr<Store> bobs;
        Acquire bob;
        Acquire carol;
    };
    [[nodiscard]] Line stand_in_line(const LockName& name) {
        Line line{open(), queued(by_bob(name)), queued(by_carol(name))};
        must(line.bobs->apply_one(by_bob(lock("of bob" + name.text())), soon()));
        const Acquire alice = by_alice(name);
        must(store_->apply_one(alice, soon()));
        EXPECT_THAT(line.bobs->apply_one(line.bob, soon()), RefusedWith(Errc::lock_conflict));
        EXPECT_THAT(store_->apply_one(line.carol, soon()), RefusedWith(Errc::lock_conflict));
        must(store_->apply_one(release(alice), soon()));
        EXPECT_TRUE(must(line.bobs->wait_for_change({name, 0, line.bob.as.lock_id}, soon())));
        return line;
    }
    [[nodiscard]] std::string queue_of(const LockName& name) {
        return by_hand_("SELECT count(*) FROM " + schema_ + ".queue WHERE name = " + ByHand::bytes(name.text()));
    }

    /// After its first change it knows the server's clock, and guesses.
    const std::unique_ptr<Store> store_ = open();
};

// A guess comes too late on a machine that is busy, and then the lock is read. So: sooner or later.
TEST_F(PostgresOptimistic, ALockThatNobodyElseUsesIsNotReadBeforeItIsChanged) {
    int acquired = 0;
    int renewed = 0;
    int released = 0;
    for (int i = 0; acquired * renewed * released == 0; ++i) {
        ASSERT_LT(i, 500);
        const Acquire mine = by_alice(lock("x" + std::to_string(i)));
        must(store_->apply_one(mine, soon()));
        acquired += was_guessed(mine.name) ? 1 : 0;
        must(store_->apply_one(renewal(mine), soon()));
        renewed += was_guessed(mine.name) ? 1 : 0;
        must(store_->apply_one(release(mine), soon()));
        released += was_guessed(mine.name) ? 1 : 0;
        sound_lock(*store_, mine.name, soon());
    }
}

TEST_F(PostgresOptimistic, WhatSomebodyElseDidMeanwhileCounts) {
    const Acquire mine = by_alice(lock("x"));
    must(store_->apply_one(mine, soon()));
    const auto other = open();
    must(other->apply_one(Break{mine.name, mine.as.lock_id, "operator", "test"}, soon()));
    EXPECT_THAT(store_->apply_one(renewal(mine), soon()), RefusedWith(Errc::lock_not_held));
    must(other->apply_one(by_bob(mine.name), soon()));
    EXPECT_THAT(store_->apply_one(release(mine), soon()), RefusedWith(Errc::lock_not_held));
    must(other->apply_one(by_bob(lock("y")), soon()));
    EXPECT_THAT(store_->apply_one(by_alice(lock("y")), soon()), RefusedWith(Errc::lock_conflict));
    for (const char* name : {"x", "y"}) EXPECT_EQ(sound_lock(*store_, lock(name), soon()).lease->holder.text, "bob");
}

// Others come between a release and the next change by the same object: the queue decides, and not what it remembers.
TEST_F(PostgresOptimistic, NobodyPassesTheQueue) {
    const auto other = open();
    const Acquire mine = by_alice(lock("x"));
    must(store_->apply_one(mine, soon()));
    const Acquire waiting = queued(by_bob(mine.name));
    EXPECT_THAT(other->apply_one(waiting, soon()), RefusedWith(Errc::lock_conflict));
    const Outcome released = must(store_->apply_one(release(mine), soon()));
    EXPECT_EQ(released.lock.lease->lock_id, waiting.as.lock_id);
    EXPECT_EQ(released.lock.waiters, 0U);
    EXPECT_THAT(store_->apply_one(by_alice(mine.name), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(other->apply_one(waiting, soon()), Granted());
}

TEST_F(PostgresOptimistic, AHolderThatWasHandedTheLockKnowsTheNextWaiter) {
    int guessed = 0;
    for (int i = 0; guessed == 0; ++i) {
        ASSERT_LT(i, 500);
        const Line line = stand_in_line(lock("x" + std::to_string(i)));
        must(line.bobs->apply_one(release(line.bob), soon()));
        guessed += was_guessed(line.bob.name) ? 1 : 0;
        EXPECT_EQ(sound_lock(*store_, line.bob.name, soon()).lease->lock_id, line.carol.as.lock_id);
        EXPECT_EQ(queue_of(line.bob.name), "0");
    }
}

TEST_F(PostgresOptimistic, AWaiterThatHasLeftIsNotHandedTheLock) {
    const Line line = stand_in_line(lock("x"));
    must(store_->apply_one(cancel(line.carol), soon()));
    must(line.bobs->apply_one(release(line.bob), soon()));
    EXPECT_EQ(sound_lock(*store_, line.bob.name, soon()).state, LockState::free);
}

TEST_F(PostgresOptimistic, AWaiterThatKeptItsPlaceMeanwhileIsHandedTheLock) {
    const Line line = stand_in_line(lock("x"));
    EXPECT_THAT(store_->apply_one(line.carol, soon()), RefusedWith(Errc::lock_conflict));
    must(line.bobs->apply_one(release(line.bob), soon()));
    EXPECT_EQ(sound_lock(*store_, line.bob.name, soon()).lease->lock_id, line.carol.as.lock_id);
    EXPECT_EQ(queue_of(line.bob.name), "0");
}

// Any user that is logged in can notify.
TEST_F(PostgresOptimistic, AFalseCallGivesNobodyTheLock) {
    const auto other = open();
    const Acquire mine = by_alice(lock("x"));
    must(store_->apply_one(mine, soon()));
    const Acquire waiting = queued(by_bob(mine.name));
    EXPECT_THAT(other->apply_one(waiting, soon()), RefusedWith(Errc::lock_conflict));
    std::atomic<bool> is_called = false;
    std::jthread waiter([&] {
        EXPECT_FALSE(must(other->wait_for_change({mine.name, 0, waiting.as.lock_id}, Deadline::never())));
        is_called = true;
    });
    while (!is_called) call(waiting);
    waiter.join();
    EXPECT_THAT(store_->apply_one(renewal(mine), soon()), Granted());
}

TEST_F(PostgresOptimistic, ARowThatWasDamagedMeanwhileBlocksItsLock) {
    for (const std::string change : {"token = token + 1", "lock_id = gen_random_uuid()",
                                     "data = set_byte(data, 30, (get_byte(data, 30) + 1) % 256)"}) {
        const Acquire mine = by_alice(lock(change));
        must(store_->apply_one(mine, soon()));
        by_hand_("UPDATE " + schema_ + ".locks SET " + change + " WHERE name = " + ByHand::bytes(change));
        EXPECT_THAT(store_->apply_one(renewal(mine), soon()), RefusedWith(Errc::record_corrupt)) << change;
        EXPECT_THAT(store_->apply_one(release(mine), soon()), RefusedWith(Errc::record_corrupt)) << change;
    }
}

// The oldest events are pruned, so the new lock's first event would not meet one with its number.
TEST_F(PostgresOptimistic, ALockThatLostItsRowIsNotNew) {
    const auto other = open();
    const Acquire old = by_bob(lock("x"));
    must(other->apply_one(old, soon()));
    must(other->apply_one(renewal(old), soon()));
    by_hand_("ALTER TABLE " + schema_ + ".locks DISABLE TRIGGER record_stays");
    by_hand_("DELETE FROM " + row_of_lock(old.name));
    by_hand_("DELETE FROM " + schema_ + ".audit WHERE seq = 1");
    EXPECT_THAT(store_->apply_one(by_alice(old.name), soon()), RefusedWith(Errc::record_corrupt));
}

TEST_F(PostgresOptimistic, NothingIsWrittenIntoANewerFormat) {
    const Acquire mine = by_alice(lock("x"));
    must(store_->apply_one(mine, soon()));
    const std::string before = events();
    by_hand_("UPDATE " + schema_ + ".meta SET format = 4");
    EXPECT_THAT(store_->apply_one(release(mine), soon()), RefusedWith(Errc::format_unsupported));
    EXPECT_THAT(store_->apply_one(by_alice(lock("y")), soon()), RefusedWith(Errc::format_unsupported));
    EXPECT_EQ(events(), before);
}

}  // namespace
}  // namespace holdfast::tests
