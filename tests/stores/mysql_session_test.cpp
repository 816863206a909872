// Goal: with ?session=on a lease is over when its holder's connection is, without waiting for its ttl; and at no other
// time before it. Method: each holder is a Store object; ending it, or killing its connection in the server, is its
// death. For the answers that a server hardly ever gives, a proxy asks it something else.
#include "stores/mysql_fixture.hpp"
#include "support/servers/proxy.hpp"

#include <fmt/format.h>

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

class MysqlSession : public testing::Test {
protected:
    [[nodiscard]] static Reply apply(Store& store, const Request& request) {
        return store.apply_one(request, MysqlPlace::soon());
    }
    /// The connections that hold a lock of GET_LOCK; `name` is a lock's.
    [[nodiscard]] std::string session_of(const std::string& name) {
        const std::string scope = "CONCAT(DATABASE(), x'00', " + hex_literal(name) + ")";
        return place_.shell.value("SELECT IS_USED_LOCK(CONCAT('hf:', LEFT(SHA2(" + scope + ", 256), 60)))");
    }
    /// The server notices the end of a connection a moment later.
    void await_end_of_session(const std::string& name) {
        while (session_of(name) != "NULL") std::this_thread::sleep_for(5ms);
    }
    /// Ends the connection of a session as a network or an administrator does.
    void cut_session(const std::string& name) {
        place_.shell.run("KILL CONNECTION " + session_of(name));
        await_end_of_session(name);
    }

    [[nodiscard]] std::unique_ptr<Store> open_through(const Proxy& proxy) const {
        return must(open_store(fmt::format("mysql://{}:{}@127.0.0.1:{}/{}?session=on", server_user_name,
                                           server_password, proxy.port(), place_.database.name())));
    }

    MysqlPlace place_{shared_server_port("mysql")};
    std::unique_ptr<Store> alices_ = place_.open("?session=on");
    std::unique_ptr<Store> bobs_ = place_.open("?session=on");
    const Acquire alice_ = by_alice(lock("x"), 1h);
    const Acquire bob_ = by_bob(lock("x"), 1h);
};

TEST_F(MysqlSession, ALeaseWhoseConnectionIsGoneIsTakenAtOnce) {
    const FencingToken token = must(apply(*alices_, alice_)).lock.token;
    EXPECT_THAT(apply(*bobs_, bob_), RefusedWith(Errc::lock_conflict));
    alices_.reset();
    await_end_of_session("x");
    const Outcome taken = must(apply(*bobs_, bob_));
    EXPECT_GT(taken.lock.token, token);
    ASSERT_TRUE(taken.stolen_from);
    EXPECT_EQ(taken.stolen_from->lock_id, alice_.as.lock_id);
    EXPECT_NE(session_of("x"), "NULL");
}

TEST_F(MysqlSession, ARefusedCallerLeavesTheSessionFree) {
    const auto plain = place_.open();
    const Acquire carol = by_carol(lock("x"), 1h);
    must(apply(*plain, carol));
    EXPECT_THAT(apply(*bobs_, bob_), RefusedWith(Errc::lock_conflict)) << "a lease without a session lasts its ttl";
    EXPECT_EQ(session_of("x"), "NULL");
}

TEST_F(MysqlSession, AReleaseFreesTheSession) {
    must(apply(*alices_, alice_));
    EXPECT_NE(session_of("x"), "NULL");
    must(apply(*alices_, renewal(alice_)));
    must(apply(*alices_, release(alice_)));
    EXPECT_EQ(session_of("x"), "NULL");
    EXPECT_THAT(apply(*bobs_, bob_), Granted());
}

TEST_F(MysqlSession, TwoHoldersInOneStoreAreKeptApart) {
    must(apply(*alices_, alice_));
    EXPECT_THAT(apply(*alices_, bob_), RefusedWith(Errc::lock_conflict))
        << "the session is there, and so is its holder";
    EXPECT_THAT(apply(*alices_, alice_), Granted()) << "asking again takes nothing over";
    EXPECT_THAT(apply(*bobs_, bob_), RefusedWith(Errc::lock_conflict));
}

TEST_F(MysqlSession, AHolderThatLostItsSessionGetsItBackWithItsNextRenewal) {
    must(apply(*alices_, alice_));
    cut_session("x");
    EXPECT_THAT(apply(*alices_, renewal(alice_)), Granted());
    EXPECT_NE(session_of("x"), "NULL");
    EXPECT_THAT(apply(*bobs_, bob_), RefusedWith(Errc::lock_conflict));
}

TEST_F(MysqlSession, AHolderThatLostItsSessionToAnotherIsTold) {
    must(apply(*alices_, alice_));
    cut_session("x");
    must(apply(*bobs_, bob_));
    EXPECT_THAT(apply(*alices_, renewal(alice_)), RefusedWith(Errc::lock_not_held));
    EXPECT_THAT(apply(*bobs_, renewal(bob_)), Granted());
}

// GET_LOCK takes 64 letters at the most, and some servers do not look at their case.
TEST_F(MysqlSession, EveryNameHasASessionOfItsOwn) {
    const std::vector<std::string> names{"X", "x", "x ", std::string(255, 'a'), std::string(254, 'a') + "b"};
    for (const std::string& name : names) {
        must(apply(*alices_, by_alice(lock(name), 1h)));
        EXPECT_NE(session_of(name), "NULL") << name;
    }
    for (const std::string& name : names)
        EXPECT_THAT(apply(*bobs_, by_bob(lock(name), 1h)), RefusedWith(Errc::lock_conflict)) << name;
    const Acquire other = by_carol(lock("X "), 1h);
    must(apply(*bobs_, other));
    must(apply(*bobs_, release(other)));
    for (const std::string& name : names)
        EXPECT_THAT(apply(*bobs_, by_bob(lock(name), 1h)), RefusedWith(Errc::lock_conflict)) << name;
}

// GET_LOCK says NULL when it cannot tell. A client that takes NULL for a yes takes over the lease of a live holder, and
// one that takes it for a no gets a lease that does not end with its connection.
TEST_F(MysqlSession, AnAnswerThatIsNeitherYesNorNoGrantsNothing) {
    Proxy proxy(shared_server_port("mysql"));
    const auto store = open_through(proxy);
    must(apply(*alices_, alice_));
    // Of one thing the one before the first, which is NULL.
    proxy.misquote("GET_LOCK(", "     ELT(");
    const Acquire free = by_bob(lock("free"), 1h);
    for (const Acquire& wanted : {bob_, free})
        EXPECT_THAT(apply(*store, wanted), RefusedWith(Errc::store_unavailable)) << wanted.name.text();
    EXPECT_THAT(apply(*alices_, renewal(alice_)), Granted());
    EXPECT_EQ(must(bobs_->inspect(free.name, MysqlPlace::soon())).seq, 0U);
    proxy.misquote("", "");
    EXPECT_THAT(apply(*store, bob_), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(apply(*store, free), Granted());
}

// A session that may still hold what it should have let go keeps others from knowing that a holder is gone.
TEST_F(MysqlSession, AReleaseThatIsNotConfirmedEndsTheSession) {
    Proxy proxy(shared_server_port("mysql"));
    const auto store = open_through(proxy);
    const Acquire kept = by_alice(lock("kept"), 1h);
    must(apply(*store, alice_));
    must(apply(*store, kept));
    // It is not free, which is 0, and stays so.
    proxy.misquote("RELEASE_LOCK(", "IS_FREE_LOCK(");
    must(apply(*store, release(alice_)));
    for (const Deadline end = MysqlPlace::soon(); session_of("x") != "NULL" && !end.passed(host_clock());)
        std::this_thread::yield();
    EXPECT_EQ(session_of("x"), "NULL");
    // The other lease gets its session back.
    EXPECT_THAT(apply(*store, renewal(kept)), Granted());
    EXPECT_NE(session_of("kept"), "NULL");
    EXPECT_EQ(session_of("x"), "NULL");
}

TEST_F(MysqlSession, OtherLocksAndOtherDatabasesHaveSessionsOfTheirOwn) {
    const MysqlPlace elsewhere(shared_server_port("mysql"));
    auto other = elsewhere.open("?session=on");
    must(apply(*alices_, alice_));
    must(apply(*other, alice_));
    alices_.reset();
    await_end_of_session("x");
    EXPECT_THAT(apply(*elsewhere.open("?session=on"), by_bob(lock("x"))), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(apply(*bobs_, bob_), Granted());
    // The other lease had a session as well, although the lock has the same name.
    other.reset();
    const auto next = elsewhere.open("?session=on");
    const Deadline deadline = Deadline::in(host_clock(), 5s);
    Reply taken = apply(*next, by_carol(lock("x")));
    while (!taken && !deadline.passed(host_clock())) taken = apply(*next, by_carol(lock("x")));
    EXPECT_THAT(taken, Granted());
}

}  // namespace
}  // namespace holdfast::tests
