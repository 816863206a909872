// Goal: each call has the right one of three endings, whatever happens to its session in the middle: it was done, it
// was not, or nobody knows. Method: triggers that end the session, or make it warn or forget, at a place that the test
// chooses; a proxy that loses what the test says.
#include "stores/postgres_fixture.hpp"
#include "support/servers/proxy.hpp"

#include <array>
#include <future>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

class PostgresEndings : public PostgresFixture {
protected:
    /// After its first change it knows the server's clock, and decides some changes without a look.
    PostgresEndings() { must(store_->apply_one(by_alice(lock("first")), soon())); }

    /// Every insert into the table runs this as well.
    void with_every_row_of(const std::string& table, const std::string& statement) {
        by_hand_(
            fmt::format("CREATE FUNCTION {0}.also() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {2}; RETURN NEW; "
                        "END $$; CREATE TRIGGER also BEFORE INSERT ON {0}.{1} FOR EACH ROW EXECUTE FUNCTION "
                        "{0}.also()",
                        schema_, table, statement));
    }
    void no_longer() { by_hand_("DROP FUNCTION " + schema_ + ".also CASCADE"); }

    /// As libpq's words reach a store, through a proxy that the test disturbs.
    [[nodiscard]] std::unique_ptr<Store> open_behind(const Proxy& proxy) const {
        return must(open_store(postgres_url(proxy.port(), "schema=" + schema_)));
    }

    const std::unique_ptr<Store> store_ = open();
};

// What was ended before COMMIT is undone, and nobody needs to hear of it. A number of a sequence stays taken.
TEST_F(PostgresEndings, AChangeWhoseSessionIsEndedBeforeItsCommitIsMadeInAnother) {
    // One that decides by what it knows, and one that looks first.
    for (const bool looks : {false, true})
        for (const std::string table : {"locks", "audit"}) {
            const LockName name = lock(table + (looks ? " looked at" : ""));
            SCOPED_TRACE(name.text());
            const auto fresh = open();
            by_hand_("CREATE SEQUENCE " + schema_ + ".once");
            with_every_row_of(table, "IF nextval('" + schema_ +
                                         ".once') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM "
                                         "pg_sleep(0); END IF");
            const Reply reply = (looks ? fresh : store_)->apply_one(by_alice(name), soon());
            EXPECT_NE(by_hand_("SELECT last_value FROM " + schema_ + ".once"), "1") << "no session was ended";
            no_longer();
            by_hand_("DROP SEQUENCE " + schema_ + ".once");
            ASSERT_THAT(reply, Granted());
            EXPECT_EQ(sound_lock(*store_, name, soon()).seq, 1U);
        }
}

// The server warns like that when it has committed and no standby has confirmed it, so it is not known whether that is
// for good. The words below come from the server itself, and not from the trigger.
TEST_F(PostgresEndings, WhatTheServerWarnsOfIsUnknownThatOnceAndNotAfterwards) {
    for (int round = 0; round < 5; ++round) {
        const Acquire mine = by_alice(lock("x" + std::to_string(round)));
        must(store_->apply_one(mine, soon()));
        with_every_row_of("audit", "PERFORM pg_cancel_backend(1)");
        EXPECT_THAT(store_->apply_one(renewal(mine), soon()), RefusedWith(Errc::outcome_unknown));
        no_longer();
        EXPECT_THAT(store_->apply_one(renewal(mine), soon()), Granted()) << "nobody warned of this one";
    }
}

TEST_F(PostgresEndings, WhatATriggerOfSomebodyWarnsOfIsNoDoubt) {
    with_every_row_of("audit", "RAISE WARNING 'a lock was used'");
    const Acquire mine = by_alice(lock("x"));
    EXPECT_THAT(store_->apply_one(mine, soon()), Granted());
    EXPECT_THAT(store_->apply_one(renewal(mine), soon()), Granted());
    EXPECT_THAT(open()->apply_one(release(mine), soon()), Granted());
}

// What is lost on the way was decided by what the store remembers. When it looks, the lock is not as it was, but it
// cannot tell whether that came before.
TEST_F(PostgresEndings, ARefusalDoesNotSettleWhatBecameOfTheLostRequest) {
    Proxy proxy(port_);
    const auto store = open_behind(proxy);
    const Acquire mine = by_alice(lock("x"));
    must(store->apply_one(mine, soon()));
    proxy.become({.holds_requests = true});
    const std::uint64_t before = proxy.messages();
    auto renewed = std::async(std::launch::async, [&] { return store->apply_one(renewal(mine), soon()); });
    while (proxy.messages() == before) std::this_thread::yield();
    by_hand_("UPDATE " + schema_ + ".locks SET token = token + 1 WHERE name = " + ByHand::bytes("x"));
    proxy.cut();
    proxy.become({});
    EXPECT_THAT(renewed.get(), RefusedWith(Errc::outcome_unknown));
    EXPECT_THAT(store->apply_one(renewal(mine), soon()), RefusedWith(Errc::record_corrupt)) << "this one is answered";
}

TEST_F(PostgresEndings, ALookWhoseConnectionBreaksIsTakenAgain) {
    Proxy proxy(port_);
    const auto store = open_behind(proxy);
    for (const Fate fate : {Fate::lose_reply, Fate::lose_request}) {
        proxy.arrange(1, fate);
        EXPECT_THAT(store->inspect(lock("first"), soon()), Granted());
        proxy.arrange(1, fate);
        EXPECT_EQ(must(store->list({}, soon())).size(), 1U);
        proxy.arrange(1, fate);
        EXPECT_EQ(must(store->history({}, soon())).size(), 1U);
        EXPECT_TRUE(proxy.has_happened());
    }
}

TEST_F(PostgresEndings, AWaitThatIsOverWhileTheServerIsSilentIsNoFailure) {
    Proxy proxy(port_);
    const auto store = open_behind(proxy);
    for (const bool in_line : {false, true}) {
        must(store->inspect(lock("first"), soon()));
        proxy.arrange(1, Fate::no_reply, 100);
        Watch watch{.name = lock("first"), .seen_seq = 1};
        if (in_line) watch.ticket = LockId::random();
        EXPECT_THAT(store->wait_for_change(watch, Deadline::in(host_clock(), 50ms)), Granted()) << in_line;
        proxy.arrange_nothing();
        proxy.cut();
    }
}

// As behind a proxy that shares sessions without showing it. The name of a statement means nothing there.
TEST_F(PostgresEndings, ASessionThatForgetsItsStatementsCostsNobodyACall) {
    with_every_row_of("audit", "DEALLOCATE ALL");
    for (int round = 0; round < 3; ++round) {
        const Acquire mine = by_alice(lock("x"));
        EXPECT_THAT(store_->apply_one(mine, soon()), Granted());
        EXPECT_THAT(store_->inspect(lock("x"), soon()), Granted());
        EXPECT_THAT(store_->apply_one(release(mine), soon()), Granted());
    }
    EXPECT_EQ(sound_lock(*store_, lock("x"), soon()).seq, 6U);
}

TEST_F(PostgresEndings, APasswordThatTheServerRepeatsIsNotShown) {
    with_every_row_of("audit", fmt::format("RAISE EXCEPTION 'not {0}, nor {0}'", server_password));
    const Reply refused = store_->apply_one(by_alice(lock("x")), soon());
    ASSERT_THAT(refused, RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(refused.error().message, HasSubstr("not ***, nor ***"));
    EXPECT_THAT(refused.error().message, Not(HasSubstr(std::string(server_password))));
}

// Two sleep on one connection. It breaks while the second says what it waits for, and none of them may be forgotten.
TEST_F(PostgresEndings, AConnectionThatBreaksWhenTheNextComesToListenCostsNoWaiterItsTurn) {
    Proxy proxy(port_);
    const auto store = open_behind(proxy);
    std::array<Acquire, 2> held{by_alice(lock("a"), 1h), by_alice(lock("b"), 1h)};
    std::array<Acquire, 2> waiting{queued(by_bob(lock("a"), 1h), 5min), queued(by_bob(lock("b"), 1h), 5min)};
    for (const Acquire& one : held) must(store_->apply_one(one, soon()));
    for (const Acquire& one : waiting) EXPECT_THAT(store->apply_one(one, soon()), RefusedWith(Errc::lock_conflict));
    const auto wait = [&](const Acquire& one) {
        return std::async(std::launch::async, [&] {
            const Deadline end = soon();
            while (!end.passed(host_clock())) {
                static_cast<void>(store->wait_for_change({.name = one.name, .ticket = one.as.lock_id}, end));
                if (store->apply_one(one, end)) return true;
            }
            return false;
        });
    };
    const std::string listens = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'WITH clock%" + schema_ + "%'";
    auto first = wait(waiting[0]);
    while (by_hand_(listens) == "0") std::this_thread::yield();
    proxy.arrange(1, Fate::lose_reply);
    auto second = wait(waiting[1]);
    while (!proxy.has_happened()) std::this_thread::yield();
    for (const Acquire& one : held) must(store_->apply_one(release(one), soon()));
    EXPECT_TRUE(first.get());
    EXPECT_TRUE(second.get());
}

}  // namespace
}  // namespace holdfast::tests
