// Goal: what MySQL and MariaDB limit or end by themselves, and servers that must not be written to, cost no lease and
// grant none. Method: servers with such limits, and a SQL shell beside the store.
#include "stores/mysql_fixture.hpp"

#include <fmt/format.h>

#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

Reply apply(Store& store, const Request& request) { return store.apply_one(request, MysqlPlace::soon()); }

/// Until it is granted: the server notices the end of a connection a moment later.
Reply insist(Store& store, const Request& request) {
    Reply reply = apply(store, request);
    for (const Deadline end = MysqlPlace::soon(); !reply && !end.passed(host_clock());) {
        std::this_thread::yield();
        reply = apply(store, request);
    }
    return reply;
}

// GET_LOCK knows 64 letters of a name on MySQL and 192 on MariaDB. Of two names that are the same up to there, each
// has a session of its own: it is free for the other, and ends with its own holder alone.
TEST(MysqlLimits, NamesThatDifferInTheirLastLetterHaveDifferentSessions) {
    const MysqlPlace place(shared_server_port("mysql"));
    const LockName one = lock(std::string(255, 'a'));
    const LockName two = lock(std::string(254, 'a') + "b");
    auto alices = place.open("?session=on");
    auto bobs = place.open("?session=on");
    must(apply(*alices, by_alice(one, 1h)));
    const Acquire bob = by_bob(two, 1h);
    ASSERT_THAT(apply(*bobs, bob), Granted());

    const auto carols = place.open("?session=on");
    for (const LockName& name : {one, two})
        EXPECT_THAT(apply(*carols, by_carol(name)), RefusedWith(Errc::lock_conflict)) << "its holder is there";
    alices.reset();
    EXPECT_THAT(insist(*carols, by_carol(one)), Granted()) << "its holder is gone";
    EXPECT_THAT(apply(*carols, by_carol(two)), RefusedWith(Errc::lock_conflict)) << "and the other one is not";
    EXPECT_THAT(apply(*bobs, renewal(bob)), Granted());
    bobs.reset();
    EXPECT_THAT(insist(*carols, by_carol(two)), Granted()) << "now it is";
}

// A connection that idles for longer than a server allows is ended, and its GET_LOCK with it: the lease would be free
// for anybody while its holder works.
TEST(MysqlLimits, AServerThatEndsIdleConnectionsEndsNoLease) {
    const auto server = start_mariadb_server({.arguments = {"--wait-timeout=3"}});
    MysqlPlace place(server->port());
    const auto alices = place.open("?session=on");
    const Acquire alice = by_alice(lock("x"), 1h);
    must(apply(*alices, alice));
    // It begins to idle after the holder does. When the server has ended it, the holder's would be gone, too.
    MysqlByHand witness(server->port());
    const std::string its_id = witness.value("SELECT CONNECTION_ID()");
    const std::string is_there = "SELECT COUNT(*) FROM information_schema.processlist WHERE id = " + its_id;
    for (const Deadline end = MysqlPlace::soon(); place.shell.value(is_there) != "0";) {
        ASSERT_FALSE(end.passed(host_clock())) << "this server ends nobody";
        std::this_thread::yield();
    }
    EXPECT_THAT(apply(*place.open("?session=on"), by_bob(lock("x"))), RefusedWith(Errc::lock_conflict));
    EXPECT_THAT(apply(*alices, renewal(alice)), Granted());
}

// A server that was the primary and is one no more.
TEST(MysqlLimits, AServerThatBecomesReadOnlyIsLeftAloneUntilItIsNot) {
    const auto server = start_mariadb_server();
    MysqlPlace place(server->port());
    place.shell.run("CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'plain'");
    place.shell.run("GRANT ALL ON " + place.database.name() + ".* TO plain@'127.0.0.1'");
    const auto store =
        must(open_store(fmt::format("mysql://plain:plain@127.0.0.1:{}/{}", server->port(), place.database.name())));
    const Acquire alice = by_alice(lock("x"), 1h);
    must(apply(*store, alice));
    place.shell.run("SET GLOBAL read_only = 1");
    EXPECT_THAT(apply(*store, renewal(alice)), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(apply(*store, by_bob(lock("y"))), RefusedWith(Errc::store_unavailable));
    place.shell.run("SET GLOBAL read_only = 0");
    EXPECT_THAT(apply(*store, renewal(alice)), Granted());
    EXPECT_EQ(must(store->inspect(lock("x"), MysqlPlace::soon())).seq, 2U) << "of the others nothing is left";
}

// A user that may write even to a read-only server, as administrators may, must not split the store in two.
TEST(MysqlLimits, AServerThatBecomesReadOnlyIsLeftAloneAlsoByAPrivilegedUser) {
    const auto server = start_mariadb_server();
    MysqlPlace place(server->port());
    const auto store = place.open();
    const Acquire alice = by_alice(lock("x"), 1h);
    must(apply(*store, alice));
    place.shell.run("SET GLOBAL read_only = 1");
    EXPECT_THAT(apply(*store, renewal(alice)), RefusedWith(Errc::store_unavailable));
}

TEST(MysqlLimits, AReplicaGrantsNothingAndLowersTheGradeOfItsPrimary) {
    const auto primary = start_mariadb_server({.arguments = {"--log-bin", "--server-id=1", "--sync-binlog=1"}});
    const auto replica = start_mariadb_server({.arguments = {"--server-id=2", "--read-only"}});
    MysqlPlace place(primary->port());
    EXPECT_EQ(place.open()->info().grade, Grade::a);
    const MysqlDatabase elsewhere(replica->port());
    MysqlByHand shell(replica->port());
    shell.run(
        fmt::format("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = '{}', "
                    "MASTER_PASSWORD = '{}'",
                    primary->port(), server_user_name, server_password));
    shell.run("START SLAVE");
    for (const Deadline end = MysqlPlace::soon();
         place.shell.run("SHOW GLOBAL STATUS LIKE 'Slaves_connected'").at(0).at(1) != "1";) {
        ASSERT_FALSE(end.passed(host_clock())) << "the replica does not connect";
        std::this_thread::yield();
    }
    const auto store = place.open();
    EXPECT_EQ(store->info().grade, Grade::b);
    EXPECT_THAT(store->info().reasons, testing::Contains(testing::HasSubstr("failover")));
    EXPECT_THAT(apply(*must(open_store(elsewhere.url())), by_bob(lock("x"))), RefusedWith(Errc::store_unavailable));
}

}  // namespace
}  // namespace holdfast::tests
