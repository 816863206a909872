// Goal: a call ends in time and says what is known, whatever breaks. Method: a proxy silences or cuts connections at a
// message that the test chooses; a standby that never answers leaves commits half done.
#include "stores/postgres_fixture.hpp"
#include "support/servers/proxy.hpp"

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

Deadline within(std::chrono::milliseconds time) { return Deadline::in(host_clock(), time); }

class PostgresFaults : public PostgresFixture {};

TEST_F(PostgresFaults, AServerThatFallsSilentEndsTheCallAtItsDeadline) {
    Proxy proxy(port_);
    must(open()->apply({}, soon()));
    const auto store = must(open_store(postgres_url(proxy.port(), "schema=" + schema_)));
    const Acquire mine = by_alice(lock("x"));
    proxy.arrange(1, Fate::no_reply);
    EXPECT_THAT(store->apply_one(mine, within(300ms)), RefusedWith(Errc::store_unavailable));
    // A connection that is there: the second message is then the one that commits.
    EXPECT_THAT(store->inspect(lock("x"), soon()), Granted());
    proxy.arrange(2, Fate::no_reply);
    EXPECT_THAT(store->apply_one(mine, within(300ms)), RefusedWith(Errc::outcome_unknown));
    EXPECT_THAT(store->apply_one(mine, soon()), Granted());
}

TEST_F(PostgresFaults, AConnectionThatBrokeWhileIdleIsReplacedUnnoticed) {
    Proxy proxy(port_);
    const auto store = must(open_store(postgres_url(proxy.port(), "schema=" + schema_)));
    must(store->apply({}, soon()));
    for (int round = 0; round < 20; ++round) {
        proxy.cut();
        EXPECT_THAT(store->apply_one(by_alice(lock("x" + std::to_string(round))), soon()), Granted());
        proxy.cut();
        EXPECT_THAT(store->inspect(lock("x"), soon()), Granted());
    }
}

// A client that is stopped between its two round trips must not block the lock for as long as it is stopped.
TEST_F(PostgresFaults, AClientThatStopsInTheMiddleBlocksNobodyForLong) {
    Proxy proxy(port_);
    const auto direct = open();
    must(direct->apply_one(by_bob(lock("other")), soon()));
    const auto store = must(open_store(postgres_url(proxy.port(), "schema=" + schema_)));
    // The request arrives and locks the row; the answer does not, so COMMIT is never sent.
    proxy.arrange(1, Fate::no_reply);
    std::jthread stuck([&] { EXPECT_FALSE(store->apply_one(by_alice(lock("x")), within(25s))); });
    while (by_hand_("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE '%" +
                    schema_ + "%'") == "0")
        std::this_thread::yield();
    EXPECT_THAT(direct->apply_one(by_bob(lock("x")), within(12s)), Granted()) << "long before the other gives up";
    proxy.cut();
}

TEST(PostgresStandby, ACommitThatNoStandbyConfirmedIsUnknown) {
    const auto server = start_postgres_server({.arguments = {"-c", "synchronous_standby_names=nobody"}});
    const std::string url = postgres_url(server->port());
    ByHand by_hand{server->port()};
    by_hand("SET synchronous_commit = local");
    by_hand(std::string(must(schema_of(url))));
    const auto store = must(open_store(url));
    const Acquire mine = by_alice(lock("x"));
    Reply reply = fail(Errc::usage, "never asked");
    std::jthread committing([&] { reply = store->apply_one(mine, within(60s)); });
    // An operator loses patience; the server then says that it committed, with a warning.
    while (by_hand("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") != "t")
        std::this_thread::yield();
    committing.join();
    EXPECT_THAT(reply, RefusedWith(Errc::outcome_unknown));
    const LockStatus status = must(store->inspect(lock("x"), within(20s)));
    ASSERT_TRUE(status.lease) << "it is committed all the same";
    EXPECT_EQ(status.lease->lock_id, mine.as.lock_id);
}

// Who is granted a lock must know whether a crash of the host can take it back, and refuse such a server if it minds.
TEST(PostgresGrade, IsWhatTheServerPromises) {
    const auto lossy = start_postgres_server({.arguments = {"-c", "fsync=off"}});
    EXPECT_THAT(open_store(postgres_url(lossy->port())), RefusedWith(Errc::store_unsafe));
    EXPECT_EQ(must(open_store(postgres_url(lossy->port(), "allow_lossy=on")))->info().grade, Grade::c);
    const auto torn = start_postgres_server({.arguments = {"-c", "full_page_writes=off"}});
    EXPECT_EQ(must(open_store(postgres_url(torn->port())))->info().grade, Grade::b);
}

}  // namespace
}  // namespace holdfast::tests
