// Goal: with session=on a lease ends with the process that acquired it, and never while that process is there.
// Method: real processes are killed; the server's own view shows which advisory locks are held.
#include "stores/postgres_fixture.hpp"
#include "support/process.hpp"

#include <csignal>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class PostgresSession : public PostgresFixture {
protected:
    PostgresSession() { must(open()->apply({}, soon())); }

    /// A process that acquires `name` for an hour and then sleeps.
    [[nodiscard]] Process start_holder(const LockName& name, const std::string& parameters) const {
        Process holder = Process::fork([&] {
            const auto store = open(parameters);
            const Reply reply = store->apply_one(by("holder", name, 1h), soon());
            print_now(reply ? "granted\n" : "refused\n");
            wait_for_end_of_input();
            return 0;
        });
        if (holder.read_line() != "granted") throw std::runtime_error("the holder got nothing");
        return holder;
    }
    static void kill_and_wait(Process& process) {
        process.send(SIGKILL);
        process.wait();
    }
    /// The sessions that hold the advisory lock which the row of `name` speaks of.
    [[nodiscard]] std::string session_of(const LockName& name) {
        return by_hand_("SELECT l.pid FROM pg_locks AS l, " + schema_ +
                        ".locks AS r WHERE l.locktype = 'advisory' AND l.granted AND "
                        "(l.classid::int8 << 32 | l.objid::int8) = r.session_key AND r.name = " +
                        ByHand::bytes(name.text()));
    }
    [[nodiscard]] bool is_bound(const LockName& name) {
        return by_hand_("SELECT session_key IS NOT NULL FROM " + row_of_lock(name)) == "t";
    }
};

TEST_F(PostgresSession, ALeaseIsTakenAtOnceWhenItsProcessIsKilled) {
    for (const char* contender : {"session=off", "session=on"}) {
        const LockName name = lock(contender);
        Process holder = start_holder(name, "session=on");
        const auto store = open(contender);
        const LockStatus held = must(store->inspect(name, soon()));
        EXPECT_THAT(store->apply_one(by_bob(name), soon()), RefusedWith(Errc::lock_conflict)) << "the holder lives";
        kill_and_wait(holder);
        // The server notices as soon as it looks at the connection.
        const Acquire mine = by_bob(name);
        Reply reply = store->apply_one(mine, soon());
        while (!reply) reply = store->apply_one(mine, soon());
        EXPECT_GT(reply->lock.token, held.token);
        ASSERT_TRUE(reply->stolen_from);
        EXPECT_EQ(reply->stolen_from->lock_id, held.lease->lock_id);
        EXPECT_THAT(store->apply_one(renewal(mine), soon()), Granted());
        EXPECT_EQ(is_bound(name), std::string(contender) == "session=on");
        sound_lock(*store, name, soon());
    }
}

TEST_F(PostgresSession, ALockIsNotHandedOnToAWaiterWhoseLeasesNeedASession) {
    const auto store = open();
    const auto bound = open("session=on");
    const Acquire alice = by_alice(lock("x"));
    must(store->apply_one(alice, soon()));
    const Acquire bob = queued(by_bob(lock("x")));
    EXPECT_THAT(bound->apply_one(bob, soon()), RefusedWith(Errc::lock_conflict));
    must(store->apply_one(release(alice), soon()));
    EXPECT_EQ(must(store->inspect(lock("x"), soon())).state, LockState::free);
    must(bound->apply_one(bob, soon()));
    EXPECT_TRUE(is_bound(lock("x")));
}

TEST_F(PostgresSession, WithoutTheOptionALeaseOutlivesItsProcess) {
    Process holder = start_holder(lock("x"), "session=off");
    kill_and_wait(holder);
    const auto store = open("session=on");
    for (int i = 0; i < 10; ++i)
        EXPECT_THAT(store->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::lock_conflict));
    // Who was refused holds nothing, once the server has heard it.
    while (by_hand_("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") != "0") std::this_thread::yield();
}

TEST_F(PostgresSession, AHolderThatAsksAgainWithoutItsSessionKeepsItsToken) {
    const auto store = open("session=on");
    const Acquire mine = by_alice(lock("x"), 1h);
    const FencingToken token = must(store->apply_one(mine, soon())).lock.token;
    by_hand_("SELECT pg_terminate_backend(" + session_of(lock("x")) + ", 10000)");
    EXPECT_EQ(must(open()->apply_one(mine, soon())).lock.token, token);
}

TEST_F(PostgresSession, AHolderWhoseConnectionBrokeRenewsAndIsSafeAgain) {
    const auto store = open("session=on");
    const auto other = open();
    const Acquire mine = by_alice(lock("x"), 1h);
    must(store->apply_one(mine, soon()));
    const std::string session = session_of(lock("x"));
    ASSERT_NE(session, "");
    by_hand_("SELECT pg_terminate_backend(" + session + ", 10000)");
    EXPECT_EQ(session_of(lock("x")), "");
    EXPECT_THAT(store->apply_one(renewal(mine), soon()), Granted());
    EXPECT_NE(session_of(lock("x")), "");
    EXPECT_THAT(other->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::lock_conflict));
}

TEST_F(PostgresSession, ALeaseThatWasTakenIsLostAndLetsGo) {
    const auto store = open("session=on");
    const auto other = open("session=on");
    const Acquire mine = by_alice(lock("x"), 1h);
    must(store->apply_one(mine, soon()));
    by_hand_("SELECT pg_terminate_backend(" + session_of(lock("x")) + ", 10000)");
    const Acquire theirs = by_bob(lock("x"), 1h);
    must(other->apply_one(theirs, soon()));
    EXPECT_THAT(store->apply_one(renewal(mine), soon()), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(store->apply_one(by_alice(lock("x")), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(other->apply_one(renewal(theirs), soon()), Granted());
}

TEST_F(PostgresSession, WhatIsReleasedIsHeldByNobody) {
    const auto store = open("session=on");
    const auto other = open("session=on");
    for (int round = 0; round < 5; ++round)
        for (Store* each : {store.get(), other.get()}) {
            const Acquire mine = by_alice(lock("x"), 1h);
            EXPECT_THAT(each->apply_one(mine, soon()), Granted());
            EXPECT_THAT(each->apply_one(release(mine), soon()), Granted());
            EXPECT_FALSE(is_bound(lock("x")));
        }
    while (by_hand_("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") != "0") std::this_thread::yield();
}

TEST_F(PostgresSession, TwoThreadsOfOneProcessExcludeEachOther) {
    const auto store = open("session=on");
    must(store->apply_one(by_alice(lock("x"), 1h), soon()));
    for (int i = 0; i < 5; ++i)
        EXPECT_THAT(store->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_NE(session_of(lock("x")), "");
}

}  // namespace
}  // namespace holdfast::tests
