// Goal: a server that refuses logins is not taken for one that is away. A waiter is told at once, and a holder is told
// why its lease is not renewed, and renews as soon as logins work again. Method: users whose password, rights or limits
// are changed under an open store.
#include "client/waiter.hpp"
#include "holdfast/open.hpp"
#include "support/etcd_by_hand.hpp"
#include "support/matchers.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/postgres_by_hand.hpp"
#include "support/redis_by_hand.hpp"
#include "support/requests.hpp"
#include "support/servers/kinds.hpp"
#include "support/servers/proxy.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <memory>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::string_view first_password = "first-canary-1";
constexpr std::string_view second_password = "second-canary-2";

Deadline soon() { return Deadline::in(host_clock(), 20s); }

/// A user of a server, whose password can be changed while it is logged in.
struct Door {
    std::unique_ptr<Server> server{};  ///< If it is the test's own.
    std::uint16_t port;
    std::function<std::string(std::string_view password, std::uint16_t port)> url_at;
    /// Ends all sessions that are logged in.
    std::function<void(std::string_view password)> change_password;

    [[nodiscard]] std::string url(std::string_view password) const { return url_at(password, port); }
    [[nodiscard]] std::string url(std::string_view password, std::uint16_t at) const { return url_at(password, at); }
};

/// A user of that name for each database: the server is shared.
std::string user_of(const MysqlDatabase& database, std::string_view name) {
    return fmt::format("{}_{}", name, database.name().substr(database.name().size() - 8));
}

Door door_of_postgres() {
    const std::uint16_t port = shared_server_port("postgres");
    const std::string user = random_schema();
    ByHand{port}(fmt::format("CREATE ROLE {} LOGIN PASSWORD '{}'; CREATE SCHEMA {} AUTHORIZATION {}", user,
                             first_password, user, user));
    return {.port = port,
            .url_at =
                [=](std::string_view password, std::uint16_t at) {
                    return fmt::format("postgres://{}:{}@127.0.0.1:{}/postgres?schema={}", user, password, at, user);
                },
            .change_password =
                [=](std::string_view password) {
                    ByHand{port}(fmt::format(
                        "ALTER ROLE {} PASSWORD '{}'; SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                        "WHERE usename = '{}'",
                        user, password, user));
                }};
}

Door door_of_mysql() {
    const std::uint16_t port = shared_server_port("mysql");
    auto database = std::make_shared<MysqlDatabase>(port);
    const std::string user = fmt::format("{}@'127.0.0.1'", user_of(*database, "door"));
    MysqlByHand shell(port);
    shell.run(fmt::format("CREATE USER {} IDENTIFIED BY '{}'", user, first_password));
    shell.run(fmt::format("GRANT ALL ON {}.* TO {}", database->name(), user));
    return {.port = port,
            .url_at =
                [=](std::string_view password, std::uint16_t at) {
                    return fmt::format("mysql://{}:{}@127.0.0.1:{}/{}", user_of(*database, "door"), password, at,
                                       database->name());
                },
            .change_password =
                [=](std::string_view password) {
                    MysqlByHand root(port);
                    root.run(fmt::format("ALTER USER {} IDENTIFIED BY '{}'", user, password));
                    root.run("KILL HARD USER " + user);
                }};
}

Door door_of_redis() {
    auto server = start_redis_server();
    const std::uint16_t port = server->port();
    const auto set = [=](std::string_view password) {
        RedisByHand root(port);
        root.ask({"ACL", "SETUSER", "door", "on", "resetpass", ">" + std::string(password), "~*", "&*", "+@all"});
        // It is told how many there were; none is no error.
        root.ask({"CLIENT", "KILL", "USER", "door"});
    };
    set(first_password);
    return {.server = std::move(server),
            .port = port,
            .url_at = [](std::string_view password,
                         std::uint16_t at) { return fmt::format("redis://door:{}@127.0.0.1:{}/0", password, at); },
            .change_password = set};
}

Door door_of_etcd() {
    auto server = start_etcd_server();
    const std::uint16_t port = server->port();
    EtcdByHand(port).require_password("locks/");
    const auto set = [=](std::string_view password) {
        EtcdByHand root(port);
        root.log_in("root", "root");
        root.call("/v3/auth/user/changepw",
                  fmt::format(R"({{"name":"{}","password":"{}"}})", server_user_name, password));
    };
    set(first_password);
    return {.server = std::move(server),
            .port = port,
            .url_at =
                [](std::string_view password, std::uint16_t at) {
                    return fmt::format("etcd://{}:{}@127.0.0.1:{}/locks", server_user_name, password, at);
                },
            .change_password = set};
}

Door door_of(const std::string& kind) {
    if (kind == "postgres") return door_of_postgres();
    if (kind == "mysql") return door_of_mysql();
    if (kind == "redis") return door_of_redis();
    return door_of_etcd();
}

class RefusedLogin : public testing::TestWithParam<std::string> {
protected:
    const Door door_ = door_of(GetParam());
};

TEST_P(RefusedLogin, UnderAnOpenStoreEndsAWaitAndNoLeaseAndIsOverWhenThePasswordIsRight) {
    const auto store = must(open_store(door_.url(first_password)));
    const Acquire alice = by_alice(lock("x"), 1h);
    const FencingToken token = must(store->apply_one(alice, soon())).lock.token;

    door_.change_password(second_password);
    EXPECT_THAT(open_store(door_.url(first_password)), RefusedWith(Errc::denied));
    // Until the first connection that was there has noticed.
    Reply renewed = store->apply_one(renewal(alice), soon());
    if (!renewed && renewed.error().code == Errc::outcome_unknown) renewed = store->apply_one(renewal(alice), soon());
    ASSERT_THAT(renewed, RefusedWith(Errc::denied));
    EXPECT_THAT(renewed.error().message, testing::Not(HasSubstr(std::string(first_password))));
    EXPECT_THAT(store->inspect(lock("x"), soon()), RefusedWith(Errc::denied));
    const auto waited = client::acquire_in_turn(*store, by_bob(lock("x")), host_clock(), {.deadline = soon()});
    EXPECT_THAT(waited, RefusedWith(Errc::denied)) << "who waits until its time is over takes it for an absence";

    door_.change_password(first_password);
    const Outcome again = must(store->apply_one(renewal(alice), soon()));
    EXPECT_EQ(again.lock.token, token) << "the lease was never lost";

    // Two faults at once: a grant whose answer is lost, and the login that would check it is refused.
    Proxy proxy(door_.port);
    const auto behind = must(open_store(door_.url(first_password, proxy.port())));
    // Once the store has seen the server's clock, it decides without a look, and has to look afterwards.
    must(behind->apply_one(by_bob(lock("z"), 1h), soon()));
    const Acquire bob = by_bob(lock("y"), 1h);
    proxy.arrange_when([&] {
        if (must(store->inspect(lock("y"), soon())).state != LockState::held) return false;
        door_.change_password(second_password);
        return true;
    });
    EXPECT_THAT(behind->apply_one(bob, soon()), RefusedWith(Errc::outcome_unknown)) << "it may have been done";
    ASSERT_TRUE(proxy.has_happened());
    door_.change_password(first_password);
    EXPECT_EQ(must(behind->apply_one(bob, soon())).lock.seq, 2U) << "once";
}

INSTANTIATE_TEST_SUITE_P(Servers, RefusedLogin, testing::ValuesIn(server_kinds()),
                         [](const auto& test) { return test.param; });

/// The refusals of a server at login, by their codes.
TEST(PostgresLogin, EveryRefusalIsOneAndNothingElseIs) {
    const ServerFolder folder;
    const std::string rules = folder.write("rules",
                                           "local all all trust\n"
                                           "host all turned_away 127.0.0.1/32 reject\n"
                                           "host all trusted 127.0.0.1/32 trust\n"
                                           "host all holdfast,plain,limited,closed 127.0.0.1/32 scram-sha-256\n");
    const auto server = start_postgres_server({.arguments = {"-c", "hba_file=" + rules}});
    ByHand shell{server->port()};
    for (const char* role : {"plain LOGIN", "closed NOLOGIN", "limited LOGIN CONNECTION LIMIT 0", "turned_away LOGIN"})
        shell(fmt::format("CREATE ROLE {} PASSWORD '{}'", role, first_password));
    shell("CREATE DATABASE private");
    shell("REVOKE CONNECT ON DATABASE private FROM PUBLIC");
    shell("CREATE DATABASE shut ALLOW_CONNECTIONS false");
    const auto opened = [&](std::string_view user, std::string_view database) {
        return open_store(
            fmt::format("postgres://{}:{}@127.0.0.1:{}/{}", user, first_password, server->port(), database));
    };
    EXPECT_THAT(opened("holdfast", "postgres"), RefusedWith(Errc::denied)) << "another password";
    EXPECT_THAT(opened("closed", "postgres"), RefusedWith(Errc::denied)) << "a role that may not log in";
    EXPECT_THAT(opened("turned_away", "postgres"), RefusedWith(Errc::denied)) << "a rule against it";
    EXPECT_THAT(opened("stranger", "postgres"), RefusedWith(Errc::denied)) << "no rule for it";
    EXPECT_THAT(opened("trusted", "postgres"), RefusedWith(Errc::denied)) << "a role that is not there";
    EXPECT_THAT(opened("plain", "private"), RefusedWith(Errc::denied)) << "no right to connect";
    EXPECT_THAT(open_store(fmt::format("postgres://plain@127.0.0.1:{}/postgres?passfile=/nowhere", server->port())),
                RefusedWith(Errc::denied))
        << "no password";

    EXPECT_THAT(opened("plain", "nowhere"), RefusedWith(Errc::config)) << "a database that is not there";
    for (const char* user : {"limited", "plain"}) {
        const auto refused = opened(user, user == std::string("limited") ? "postgres" : "shut");
        EXPECT_THAT(refused, RefusedWith(Errc::store_unavailable)) << "others are connected, or nobody may be, for now";
        EXPECT_THAT(refused.error().message, testing::Not(HasSubstr(".c:"))) << "places in the server's sources";
    }
}

TEST(MysqlLogin, EveryRefusalIsOneAndNothingElseIs) {
    const std::uint16_t port = shared_server_port("mysql");
    const MysqlDatabase database(port);
    MysqlByHand shell(port);
    const auto with_user = [&](const std::string& name, const std::string& terms) {
        const std::string user = fmt::format("{}@'127.0.0.1'", user_of(database, name));
        shell.run(fmt::format("CREATE USER {} IDENTIFIED BY '{}' {}", user, first_password, terms));
        shell.run(fmt::format("GRANT ALL ON {}.* TO {}", database.name(), user));
    };
    with_user("plain", "");
    with_user("locked", "ACCOUNT LOCK");
    with_user("expired", "PASSWORD EXPIRE");
    with_user("secret", "REQUIRE SSL");
    with_user("limited", "WITH MAX_USER_CONNECTIONS 1");
    const auto opened = [&](std::string_view user, std::string_view where) {
        return open_store(
            fmt::format("mysql://{}:{}@127.0.0.1:{}/{}", user_of(database, user), first_password, port, where));
    };
    EXPECT_THAT(opened("plain", database.name()), Granted());
    for (const char* user : {"nobody", "locked", "expired", "secret"})
        EXPECT_THAT(opened(user, database.name()), RefusedWith(Errc::denied)) << user;
    EXPECT_THAT(opened("plain", "mysql"), RefusedWith(Errc::denied)) << "a database of others";
    EXPECT_THAT(open_store(fmt::format("mysql://{}:{}@127.0.0.1:{}/nowhere", server_user_name, server_password, port)),
                RefusedWith(Errc::config))
        << "a database that is not there";
    const auto first = opened("limited", database.name());
    ASSERT_THAT(first, Granted());
    EXPECT_THAT(opened("limited", database.name()), RefusedWith(Errc::store_unavailable)) << "somebody is connected";
    // Of several servers one may be away, and another may know better.
    EXPECT_THAT(open_store(fmt::format("mysql://nobody:{}@127.0.0.1:{},127.0.0.1:1/locks", first_password, port)),
                RefusedWith(Errc::denied));
    for (const char* user : {"plain", "locked", "expired", "secret", "limited"})
        shell.run(fmt::format("DROP USER {}@'127.0.0.1'", user_of(database, user)));
}

TEST(RedisLogin, EveryRefusalIsOneAndNothingElseIs) {
    const auto server = start_redis_server();
    RedisByHand root(server->port());
    const std::string password = ">" + std::string(first_password);
    root.ask({"ACL", "SETUSER", "off", "off", password, "~*", "&*", "+@all"});
    root.ask({"ACL", "SETUSER", "mute", "on", password, "~*", "&*", "-@all"});
    root.ask({"ACL", "SETUSER", "elsewhere", "on", password, "~other:*", "&*", "+@all"});
    const auto opened = [&](std::string_view user, int database) {
        return open_store(fmt::format("redis://{}:{}@127.0.0.1:{}/{}", user, first_password, server->port(), database));
    };
    for (const char* user : {"off", "mute", "nobody", "default", "elsewhere"})
        EXPECT_THAT(opened(user, 0), RefusedWith(Errc::denied)) << user;
    EXPECT_THAT(open_store(fmt::format("redis://:{}@127.0.0.1:{}/4711", server_password, server->port())),
                RefusedWith(Errc::config))
        << "a database that is not there";
    root.ask({"CONFIG", "SET", "maxclients", "1"});
    const auto full = open_store(fmt::format("redis://:{}@127.0.0.1:{}/0", server_password, server->port()));
    ASSERT_THAT(full, RefusedWith(Errc::store_unavailable));
}

}  // namespace
}  // namespace holdfast::tests
