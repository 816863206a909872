// Goal: with session=on a lease ends with the process that acquired it, and never while that process is there.
// Method: real processes are killed; the server's own view shows which advisory locks are held.
#include "stores/postgres_fixture.hpp"
#include "support/process.hpp"
#include "support/servers/proxy.hpp"

#include <csignal>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class PostgresSession : public PostgresFixture {
protected:
    PostgresSession() { must(open()->apply({}, soon())); }

    /// What is let go is let go without waiting for the answer, so the server hears of it a moment later.
    [[nodiscard]] bool nobody_holds_any() {
        const Deadline end = soon();
        while (by_hand_("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") != "0")
            if (end.passed(host_clock())) return false;
        return true;
    }

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
    for (const auto& [contender, in_line] : {std::pair("session=off", false), std::pair("session=off", true),
                                             std::pair("session=on", false), std::pair("session=on", true)}) {
        const LockName name = lock(contender + std::string(in_line ? " in line" : ""));
        const Acquire mine = in_line ? queued(by_bob(name), 1h) : by_bob(name);
        Process holder = start_holder(name, "session=on");
        const auto store = open(contender);
        const LockStatus held = must(store->inspect(name, soon()));
        EXPECT_THAT(store->apply_one(by_carol(name), soon()), RefusedWith(Errc::lock_conflict)) << "the holder lives";
        kill_and_wait(holder);
        // The server notices when it looks at the connection the next time.
        for (const Deadline end = soon(); session_of(name) != "" && !end.passed(host_clock());) continue;
        const Reply reply = store->apply_one(mine, soon());
        ASSERT_THAT(reply, Granted());
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
    EXPECT_TRUE(nobody_holds_any()) << "who was refused";
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

// Each lease is renewed at its own time, and until then the others would be anybody's.
TEST_F(PostgresSession, AHolderWhoseConnectionBrokeIsSafeAgainForAllItsLeasesAtTheNextCall) {
    const auto store = open("session=on");
    const auto other = open();
    const Acquire next_call = by_alice(lock("next call"), 1h);
    must(store->apply_one(by_alice(lock("x"), 1h), soon()));
    must(store->apply_one(next_call, soon()));
    by_hand_("SELECT pg_terminate_backend(" + session_of(lock("x")) + ", 10000)");
    EXPECT_EQ(session_of(lock("x")), "");
    EXPECT_THAT(store->apply_one(renewal(next_call), soon()), Granted());
    EXPECT_NE(session_of(lock("x")), "");
    EXPECT_THAT(other->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::lock_conflict));
}

// A holder of the lease's key may renew and release it, also without a session; and then it remembers the lock, so that
// its own lease is written without a look at the row.
TEST_F(PostgresSession, ALeaseDoesNotEndWithTheSessionOfTheOneBeforeIt) {
    auto bound = open("session=on");
    const auto store = open();
    const Acquire before = by_alice(lock("x"), 1h);
    must(bound->apply_one(before, soon()));
    must(store->apply_one(renewal(before), soon()));
    EXPECT_TRUE(is_bound(lock("x"))) << "a renewal by somebody without a session leaves the lease as it was";
    must(store->apply_one(release(before), soon()));
    const Acquire mine = by_bob(lock("x"), 1h);
    must(store->apply_one(mine, soon()));
    EXPECT_FALSE(is_bound(lock("x")));
    // With its session the one before has nothing to do with the lock any more, whenever the server hears of its end.
    bound.reset();
    while (session_of(lock("x")) != "") std::this_thread::yield();
    EXPECT_THAT(open()->apply_one(by_carol(lock("x")), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(store->apply_one(renewal(mine), soon()), Granted());
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
            EXPECT_EQ(is_bound(lock("x")), session_of(lock("x")) != "") << "a row that speaks of a session has one";
            EXPECT_THAT(each->apply_one(release(mine), soon()), Granted());
            EXPECT_FALSE(is_bound(lock("x")));
        }
    EXPECT_TRUE(nobody_holds_any());
}

// Whatever ends a lease, or keeps it from coming: an advisory lock that stays would take the next holder's session
// away.
TEST_F(PostgresSession, WhatEndsOtherwiseOrNeverCameIsHeldByNobodyEither) {
    const auto store = open("session=on");
    const Acquire given = by_alice(lock("given on"), 1h);
    const Acquire to = by_bob(lock("given on"), 1h);
    must(store->apply_one(given, soon()));
    EXPECT_THAT(store->apply_one(Transfer{given.name, given.as, to.holder, to.as, ""}, soon()), Granted());
    EXPECT_TRUE(nobody_holds_any()) << "after a transfer";
    EXPECT_THAT(open()->apply_one(by_carol(lock("given on")), soon()), RefusedWith(Errc::lock_conflict));

    const Acquire waiting = queued(by_bob(lock("given on")));
    EXPECT_THAT(store->apply_one(waiting, soon()), RefusedWith(Errc::lock_conflict));
    must(store->apply_one(cancel(waiting), soon()));
    EXPECT_TRUE(nobody_holds_any()) << "of who left the line";

    const Acquire broken = by_alice(lock("broken"), 1h);
    must(store->apply_one(broken, soon()));
    must(open()->apply_one(Break{broken.name, broken.as.lock_id, "root", "test"}, soon()));
    EXPECT_THAT(store->apply_one(renewal(broken), soon()), RefusedWith(Errc::lock_not_held));
    EXPECT_TRUE(nobody_holds_any()) << "once it was told";

    by_hand_("BEGIN");
    by_hand_("SELECT 1 FROM " + row_of_lock(lock("broken")) + " FOR UPDATE");
    EXPECT_THAT(store->apply_one(by_alice(lock("broken")), Deadline::in(host_clock(), 200ms)),
                RefusedWith(Errc::store_unavailable));
    by_hand_("COMMIT");
    EXPECT_TRUE(nobody_holds_any()) << "nothing was changed";
}

// There may be a lease, and its holder will find out. Until then nobody may take it for one whose process is gone.
TEST_F(PostgresSession, ALeaseThatNobodyKnowsOfKeepsItsSession) {
    Proxy proxy(port_);
    const auto store = must(open_store(postgres_url(proxy.port(), "schema=" + schema_ + "&session=on")));
    const auto other = open();
    const Acquire mine = by_alice(lock("x"), 1h);
    proxy.arrange_when([&] { return must(other->inspect(lock("x"), soon())).state == LockState::held; });
    EXPECT_THAT(store->apply_one(mine, soon()), RefusedWith(Errc::outcome_unknown));
    EXPECT_NE(session_of(lock("x")), "");
    EXPECT_THAT(other->apply_one(by_bob(lock("x")), soon()), RefusedWith(Errc::lock_conflict));
    EXPECT_EQ(must(store->apply_one(mine, soon())).lock.seq, 2U) << "it was granted once";
}

// The session of the one before may be gone without the server having noticed. Then a lease comes without its own.
TEST_F(PostgresSession, ALeaseThatCameWithoutASessionGetsOneWithItsNextRenewal) {
    const auto store = open("session=on");
    const Acquire before = by_alice(lock("x"), 1h);
    must(store->apply_one(before, soon()));
    const std::string key = by_hand_("SELECT session_key FROM " + row_of_lock(lock("x")));
    must(store->apply_one(release(before), soon()));
    EXPECT_TRUE(nobody_holds_any());
    by_hand_("SELECT pg_advisory_lock(" + key + ")");
    const Acquire mine = by_bob(lock("x"), 1h);
    must(store->apply_one(mine, soon()));
    EXPECT_FALSE(is_bound(lock("x"))) << "whoever finds the advisory lock free would take the lease";
    by_hand_("SELECT pg_advisory_unlock(" + key + ")");
    must(store->apply_one(renewal(mine), soon()));
    EXPECT_TRUE(is_bound(lock("x")));
    EXPECT_NE(session_of(lock("x")), "");
}

TEST_F(PostgresSession, StoresInOneDatabaseShareNoSession) {
    const std::string schema = random_schema();
    const auto store = open("session=on");
    const auto beside = must(open_store(postgres_url(port_, "session=on&schema=" + schema)));
    must(store->apply_one(by_alice(lock("x"), 1h), soon()));
    must(beside->apply_one(by_bob(lock("x"), 1h), soon()));
    EXPECT_TRUE(is_bound(lock("x")));
    EXPECT_EQ(by_hand_("SELECT session_key IS NOT NULL FROM " + schema + ".locks"), "t");
    by_hand_("DROP SCHEMA " + schema + " CASCADE");
}

// One lease was taken by somebody else meanwhile; those behind it are still there.
TEST_F(PostgresSession, ALeaseThatWasTakenDoesNotKeepTheOthersFromTheirSessions) {
    const auto store = open("session=on");
    const auto other = open("session=on");
    const Acquire last = by_alice(lock("c"), 1h);
    for (const char* name : {"a", "b"}) must(store->apply_one(by_alice(lock(name), 1h), soon()));
    must(store->apply_one(last, soon()));
    by_hand_("SELECT pg_terminate_backend(" + session_of(lock("a")) + ", 10000)");
    must(other->apply_one(by_bob(lock("a"), 1h), soon()));
    EXPECT_THAT(store->apply_one(renewal(last), soon()), Granted());
    EXPECT_NE(session_of(lock("b")), "") << "which nobody has renewed";
    EXPECT_THAT(other->apply_one(by_bob(lock("b")), soon()), RefusedWith(Errc::lock_conflict));
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
