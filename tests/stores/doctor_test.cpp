// Goal: `doctor` sees what keeps a server from being used, before somebody needs a lock: no memory, no disk, no rights,
// records that cannot be read. It changes nothing. Method: real servers that are brought into that state by hand.
#include "holdfast/open.hpp"
#include "stores/redis/grade.hpp"
#include "stores/redis_fixture.hpp"
#include "support/etcd_by_hand.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/store_harness.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sys/stat.h>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;

auto is(bool ok, const std::string& name, const std::string& words) {
    return AllOf(Field(&Finding::name, name), Field(&Finding::ok, ok), Field(&Finding::detail, HasSubstr(words)));
}
auto passes(const std::string& name, const std::string& words = "") { return is(true, name, words); }
auto fails(const std::string& name, const std::string& words = "") { return is(false, name, words); }

class ServerDoctor : public testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] static Result<std::unique_ptr<StoreHarness>> start() {
        if (GetParam() == "postgres") return start_postgres();
        if (GetParam() == "mysql") return start_mysql();
        if (GetParam() == "redis") return start_redis();
        return start_etcd();
    }

    const std::unique_ptr<StoreHarness> harness_ = must(start());
    Store& store_ = harness_->store();
};

TEST_P(ServerDoctor, ReadsEveryRecordAndNamesTheOneThatCannotBeRead) {
    must(store_.apply_one(by_alice(lock("sound"), 1h), soon()));
    must(store_.apply_one(by_alice(lock("damaged"), 1h), soon()));
    const auto before = store_.examine(soon());
    EXPECT_THAT(before, Each(Field(&Finding::ok, true)));
    EXPECT_THAT(before, Contains(passes("records", "2")));
    EXPECT_THAT(before, Contains(passes("format", GetParam() == "postgres" || GetParam() == "mysql" ? "3" : "2")));
    EXPECT_THAT(before, Contains(passes("rights")));
    EXPECT_THAT(before, Contains(passes("writes")));
    EXPECT_EQ(must(store_.list({.with_free = true}, soon())).size(), 2U) << "looking has left nothing behind";
    harness_->corrupt(lock("damaged"));
    EXPECT_THAT(store_.examine(soon()), Contains(fails("records", "damaged")));
}

INSTANTIATE_TEST_SUITE_P(Servers, ServerDoctor, testing::ValuesIn(server_kinds()),
                         [](const auto& test) { return test.param; });

TEST(RedisDoctor, SeesThatTheServerIsOutOfMemory) {
    const OwnRedis redis;
    const auto store = must(redis.open());
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    redis.by_hand().ask({"CONFIG", "SET", "maxmemory", "100000"});
    const auto findings = store->examine(soon());
    EXPECT_THAT(findings, Contains(fails("memory", "out of memory")));
    EXPECT_THAT(findings, Contains(fails("writes", "has no memory left")));
    EXPECT_THAT(store->apply_one(renewal(alice), soon()).error().message, HasSubstr("has no memory left"));
}

// A server that cannot save takes no changes: MISCONF.
TEST(RedisDoctor, SeesThatTheServerCannotWriteToItsDisk) {
    OwnRedis redis({"--dbfilename", "taken"});
    const auto store = must(redis.open());
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    RedisByHand server = redis.by_hand();
    // A folder of that name keeps it from saving as a full disk does.
    mkdir((redis.server().folder().path() / "taken").c_str(), 0700);
    server.ask({"CONFIG", "SET", "save", "3600 1"});
    server.ask({"BGSAVE"});
    const Deadline end = soon();
    while (server.ask({"INFO", "persistence"}).find("rdb_last_bgsave_status:err") == std::string::npos) {
        ASSERT_FALSE(end.passed(host_clock())) << "it could save";
        std::this_thread::yield();
    }
    EXPECT_THAT(store->examine(soon()), Contains(fails("writes", "cannot write to its disk")));
    EXPECT_THAT(store->apply_one(renewal(alice), soon()).error().message, HasSubstr("cannot write to its disk"));
}

// A script that meets a command that its user may not run goes no further, and what it has written stays. A grant would
// be in the audit log and nowhere else, and its lock blocked for ever.
TEST(RedisDoctor, SeesMissingRightsAndNothingIsHalfChangedWithoutThem) {
    const OwnRedis redis;
    RedisByHand root = redis.by_hand();
    const std::string password(server_password);
    root.ask({"ACL", "SETUSER", "locker", "on", ">" + password, "~*", "&*", "+@all", "-mset"});
    const std::string url = fmt::format("redis://locker:{}@127.0.0.1:{}/0", password, root.port());
    const auto store = must(open_store(url));
    EXPECT_THAT(store->examine(soon()), Contains(fails("rights", "MSET")));
    const Acquire alice = by_alice(lock("x"), 1h);
    const Reply refused = store->apply_one(alice, soon());
    ASSERT_THAT(refused, RefusedWith(Errc::denied));
    EXPECT_THAT(refused.error().message, HasSubstr("MSET"));
    EXPECT_TRUE(root.keys("holdfast").empty());
    EXPECT_THAT(store->inspect(lock("x"), soon()), Granted()) << "who may only look can";

    root.ask({"ACL", "SETUSER", "locker", "+mset"});
    EXPECT_THAT(store->apply_one(alice, soon()), Granted());
    EXPECT_THAT(store->examine(soon()), Each(Field(&Finding::ok, true)));
    expect_sound(*store, lock("x"));
}

TEST(RedisDoctor, NamesTheProgramThatAnswers) {
    using stores::redis::program_in;
    EXPECT_EQ(program_in("# Server\r\nredis_version:7.0.15\r\n"), "Redis 7.0.15");
    EXPECT_EQ(program_in("# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n"),
              "Valkey 8.0.1");
    const OwnRedis redis;
    EXPECT_THAT(must(redis.open())->examine(soon()), Contains(passes("server", "Redis ")));
}

TEST(EtcdDoctor, SeesThatTheDatabaseIsFull) {
    const auto server = start_etcd_server();
    const auto store = must(open_store(fmt::format("etcd://127.0.0.1:{}/locks", server->port())));
    must(store->apply({}, soon()));
    EtcdByHand(server->port()).call("/v3/maintenance/alarm", R"({"action":"ACTIVATE","alarm":"NOSPACE"})");
    const auto findings = store->examine(soon());
    EXPECT_THAT(findings, Contains(fails("alarms", "NOSPACE")));
    EXPECT_THAT(findings, Contains(fails("writes", "its database is full")));
}

TEST(EtcdDoctor, SeesThatTheRoleMayOnlyRead) {
    const auto server = start_etcd_server();
    EtcdByHand root(server->port());
    root.require_password("locks/");
    const auto store = must(
        open_store(fmt::format("etcd://{}:{}@127.0.0.1:{}/locks", server_user_name, server_password, server->port())));
    const Acquire alice = by_alice(lock("x"), 1h);
    must(store->apply_one(alice, soon()));
    EXPECT_THAT(store->examine(soon()), Contains(passes("rights")));
    root.log_in("root", "root");
    // From "locks/" to "locks0".
    root.call("/v3/auth/role/grant",
              R"({"name":"locks","perm":{"permType":"READ","key":"bG9ja3Mv","range_end":"bG9ja3Mw"}})");
    EXPECT_THAT(store->examine(soon()), Contains(fails("rights", "permission denied")));
    EXPECT_THAT(store->apply_one(renewal(alice), soon()), RefusedWith(Errc::denied));
    EXPECT_EQ(must(store->inspect(lock("x"), soon())).state, LockState::held);
}

TEST(PostgresDoctor, SeesMissingRightsAndAFullDisk) {
    const std::uint16_t port = shared_server_port("postgres");
    const std::string schema = random_schema();
    ByHand root{port};
    const auto owner = must(open_store(postgres_url(port, "schema=" + schema)));
    must(owner->apply({}, soon()));
    root(
        fmt::format("CREATE ROLE {0}; GRANT USAGE ON SCHEMA {0} TO {0}; GRANT SELECT ON ALL TABLES IN SCHEMA {0} TO "
                    "{0}; GRANT INSERT ON {0}.locks, {0}.audit TO {0}; GRANT ALL ON {0}.queue TO {0}",
                    schema));
    const auto store = must(open_store(postgres_url(port, fmt::format("schema={0}&options=-c%20role%3D{0}", schema))));
    EXPECT_THAT(store->examine(soon()), Contains(fails("rights", "UPDATE on locks")));
    root(fmt::format("GRANT UPDATE ON {0}.locks TO {0}", schema));
    EXPECT_THAT(store->examine(soon()), Contains(fails("rights", "UPDATE (used) on meta")));
    root(fmt::format("GRANT UPDATE (used) ON {0}.meta TO {0}", schema));
    EXPECT_THAT(store->examine(soon()), Contains(passes("rights", "all but prune")));

    // Nobody can fill the disk of this host; the server's words are those of one that is full.
    root(fmt::format(
        "CREATE FUNCTION {0}.refuse_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could "
        "not extend file' USING ERRCODE = 'disk_full'; END $$; CREATE TRIGGER refuses BEFORE INSERT ON "
        "{0}.locks FOR EACH ROW EXECUTE FUNCTION {0}.refuse_all()",
        schema));
    EXPECT_THAT(store->examine(soon()), Contains(fails("writes", "disk is full")));
    const Reply refused = store->apply_one(by_alice(lock("x")), soon());
    ASSERT_THAT(refused, RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("disk is full"), HasSubstr("nothing was changed")));
    root(fmt::format("DROP SCHEMA {0} CASCADE; DROP ROLE {0}", schema));
}

TEST(MysqlDoctor, SeesMissingRightsAndAFullTable) {
    const std::uint16_t port = shared_server_port("mysql");
    const MysqlDatabase database(port);
    MysqlByHand root(port, database.name());
    const auto owner = must(open_store(database.url()));
    must(owner->apply({}, soon()));
    const std::string user = database.name().substr(0, 30) + "@'127.0.0.1'";
    root.run(fmt::format("CREATE USER {} IDENTIFIED BY '{}'", user, server_password));
    root.run(fmt::format("GRANT SELECT ON {}.* TO {}", database.name(), user));
    for (const char* rights :
         {"INSERT, UPDATE ON {}.holdfast_locks TO {}", "INSERT, UPDATE, DELETE ON {}.holdfast_queue TO {}"})
        root.run(fmt::format(fmt::runtime("GRANT " + std::string(rights)), database.name(), user));
    const auto store = must(open_store(fmt::format("mysql://{}:{}@127.0.0.1:{}/{}", database.name().substr(0, 30),
                                                   server_password, port, database.name())));
    EXPECT_THAT(store->examine(soon()), Contains(fails("rights", "INSERT on holdfast_audit")));
    root.run(fmt::format("GRANT INSERT ON {}.holdfast_audit TO {}", database.name(), user));
    EXPECT_THAT(store->examine(soon()), Contains(fails("rights", "UPDATE (used) on holdfast_meta")));
    const Reply unmarked = store->apply_one(by_alice(lock("x")), soon());
    ASSERT_THAT(unmarked, RefusedWith(Errc::denied));
    EXPECT_THAT(unmarked.error().message, HasSubstr("UPDATE (used)"));
    root.run(fmt::format("GRANT UPDATE (used) ON {}.holdfast_meta TO {}", database.name(), user));
    EXPECT_THAT(store->examine(soon()), Contains(passes("rights", "all but prune")));

    // Nobody can fill the disk of this host; the server's words are those of one that is full.
    root.run(
        "CREATE TRIGGER full BEFORE INSERT ON holdfast_locks FOR EACH ROW SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = "
        "1114, MESSAGE_TEXT = 'The table holdfast_locks is full'");
    EXPECT_THAT(store->examine(soon()), Contains(fails("writes", "is full")));
    const Reply refused = store->apply_one(by_alice(lock("x")), soon());
    ASSERT_THAT(refused, RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("its disk or a table is full"), HasSubstr("nothing was changed")));
    root.run("DROP TRIGGER full");
    EXPECT_THAT(store->apply_one(by_alice(lock("x")), soon()), Granted());
    root.run("DROP USER " + user);
}

}  // namespace
}  // namespace holdfast::tests
