// Goal: the store says what its server promises, refuses the ones that promise nothing, tells no secrets, and outlives
// a server that is stopped. Method: servers of this test's own.
#include "stores/mysql_fixture.hpp"
#include "support/temp_folder.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <sys/socket.h>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

// With a binary log, a crash takes back what that does not have, and MariaDB does not sync it unless it is told to. A
// token that was given once would be given again.
TEST(MysqlServer, TheGradeSaysWhatAPowerCutOrAFailoverTakesBack) {
    const auto server = start_mariadb_server({.arguments = {"--log-bin", "--server-id=1", "--sync-binlog=1"}});
    MysqlPlace place(server->port());
    EXPECT_EQ(place.open()->info().grade, Grade::a);
    for (const char* worse : {"sync_binlog = 0", "innodb_flush_log_at_trx_commit = 2"}) {
        place.shell.run(fmt::format("SET GLOBAL {}", worse));
        const auto store = place.open();
        EXPECT_EQ(store->info().grade, Grade::b) << worse;
        EXPECT_THAT(store->examine(MysqlPlace::soon()), testing::Contains(testing::Field(&Finding::ok, false)));
        place.shell.run("SET GLOBAL sync_binlog = 1, innodb_flush_log_at_trx_commit = 1");
    }
}

TEST(MysqlServer, AReadOnlyServerGrantsNothing) {
    const auto server = start_mariadb_server();
    MysqlPlace place(server->port());
    const auto store = place.open();
    must(store->apply_one(by_alice(lock("x")), MysqlPlace::soon()));
    place.shell.run("SET GLOBAL read_only = 1");
    // The user of this test may write to it all the same; the store must not.
    const auto fresh = must(open_store(place.database.url()));
    EXPECT_EQ(must(fresh->inspect(lock("x"), MysqlPlace::soon())).state, LockState::held);
    EXPECT_EQ(must(fresh->list({}, MysqlPlace::soon())).size(), 1U);
    EXPECT_EQ(must(fresh->history({}, MysqlPlace::soon())).size(), 1U);
    EXPECT_TRUE(fresh->info().may_be_stale);
    EXPECT_THAT(fresh->apply_one(by_bob(lock("y")), MysqlPlace::soon()), RefusedWith(Errc::store_unavailable));
    EXPECT_THAT(store->examine(MysqlPlace::soon()),
                testing::Contains(testing::AllOf(testing::Field(&Finding::ok, false),
                                                 testing::Field(&Finding::detail, testing::HasSubstr("read-only")))))
        << "also through a store that was opened before";
    place.shell.run("SET GLOBAL read_only = 0");
    EXPECT_THAT(fresh->apply_one(by_bob(lock("y")), MysqlPlace::soon()), Granted());
    EXPECT_FALSE(fresh->info().may_be_stale);
}

// The driver could read one from the home folder, with another server and another user in it.
TEST(MysqlServer, NoOptionFileIsRead) {
    const TempFolder home;
    std::ofstream(home.path() / ".my.cnf") << "[client]\nport=1\nuser=nobody\npassword=none\nsocket=/none\n";
    const char* const before = std::getenv("HOME");
    const std::string old = before == nullptr ? "" : before;
    setenv("HOME", home.path().c_str(), 1);
    const MysqlPlace place(shared_server_port("mysql"));
    EXPECT_THAT(place.open()->apply_one(by_alice(lock("x")), MysqlPlace::soon()), Granted());
    setenv("HOME", old.c_str(), 1);
}

TEST(MysqlServer, NoErrorTellsThePassword) {
    const std::uint16_t port = shared_server_port("mysql");
    const std::string user(server_user_name);
    const std::string secret(server_password);
    const std::vector<std::string> urls{fmt::format("mysql://{}:wrong-{}@127.0.0.1:{}/mysql", user, secret, port),
                                        fmt::format("mysql://{}:{}@127.0.0.1:{}/no_such_database", user, secret, port),
                                        fmt::format("mysql://{}:{}@127.0.0.1:1/x", user, secret),
                                        fmt::format("mysql://{}:{}@no-such-host.invalid/x", user, secret),
                                        fmt::format("mysql://{}:{}@127.0.0.1:{}/mysql?tls=verify", user, secret, port),
                                        fmt::format("mysql://{}:{}@127.0.0.1:{}/mysql?tls=maybe", user, secret, port),
                                        fmt::format("mysql://{}:{}@127.0.0.1:{}/", user, secret, port)};
    for (const std::string& url : urls) {
        const auto opened = open_store(url);
        ASSERT_FALSE(opened) << url;
        EXPECT_THAT(opened.error().message, testing::Not(testing::HasSubstr(secret)));
    }
    EXPECT_THAT(open_store(urls[0]), RefusedWith(Errc::denied));
    MysqlPlace place(port);
    const auto store = place.open();
    EXPECT_THAT(store->info().url, testing::Not(testing::HasSubstr(secret)));
    for (const Finding& finding : store->examine(MysqlPlace::soon()))
        EXPECT_THAT(finding.detail, testing::Not(testing::HasSubstr(secret)));
}

/// A certificate for `localhost`, made for this test.
std::vector<std::string> tls_options(const ServerFolder& folder) {
    const std::string key = (folder.path() / "key.pem").string();
    const std::string certificate = (folder.path() / "cert.pem").string();
    run_as_server({"/usr/bin/openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                   "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate});
    return {"--ssl-key=" + key, "--ssl-cert=" + certificate};
}

TEST(MysqlServer, TlsTrustsOnlyTheNamedAuthority) {
    const ServerFolder folder;
    const auto server = start_mariadb_server({.arguments = tls_options(folder)});
    const MysqlDatabase database(server->port());
    const auto url = [&](std::string_view host, std::string_view parameters) {
        return fmt::format("mysql://{}:{}@{}:{}/{}?{}", server_user_name, server_password, host, server->port(),
                           database.name(), parameters);
    };
    const std::string ca = "tls_ca=" + (folder.path() / "cert.pem").string();
    EXPECT_THAT(open_store(url("localhost", "tls=verify")), RefusedWith(Errc::store_unavailable))
        << "nobody vouches for the certificate";
    EXPECT_THAT(open_store(url("127.0.0.1", ca)), RefusedWith(Errc::store_unavailable)) << "it is for another host";
    const auto store = must(open_store(url("localhost", ca)));
    EXPECT_THAT(store->apply_one(by_alice(lock("x")), MysqlPlace::soon()), Granted());
    EXPECT_THAT(store->examine(MysqlPlace::soon()),
                testing::Contains(testing::AllOf(testing::Field(&Finding::name, "tls"),
                                                 testing::Field(&Finding::detail, "verified"))));
    MysqlPlace plain(shared_server_port("mysql"));
    EXPECT_THAT(open_store(plain.database.url() + "?tls=verify"), RefusedWith(Errc::store_unavailable))
        << "a server without TLS is no reason to do without";
}

TEST(MysqlServer, NoDescriptorIsLeftToTheCommandsThatAHolderStarts) {
    const auto sockets = [] {
        std::set<int> found;
        for (int fd = 0; fd < 1024; ++fd) {
            int type = 0;
            socklen_t size = sizeof type;
            const bool is_socket = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
            if (is_socket && (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) found.insert(fd);
        }
        return found;
    };
    const MysqlDatabase database(shared_server_port("mysql"));
    const auto before = sockets();
    const auto store = must(open_store(database.url()));
    EXPECT_EQ(sockets(), before);
}

// A server that does not answer is given up at the deadline, before anything is sent and after. What it finds when it
// goes on is too old then.
TEST(MysqlServer, AStoppedServerCostsNoMoreThanTheDeadline) {
    const auto server = start_mariadb_server();
    MysqlPlace place(server->port());
    const auto store = place.open();
    must(store->apply_one(by_alice(lock("x")), MysqlPlace::soon()));
    server->send(SIGSTOP);
    for (int i = 0; i < 2; ++i) {
        const Boottime before = host_clock().boottime();
        const Reply reply = store->apply_one(by_bob(lock("y")), Deadline::in(host_clock(), 300ms));
        EXPECT_THAT(reply, RefusedWith(i == 0 ? Errc::outcome_unknown : Errc::store_unavailable))
            << "the first is sent on a connection that is there, and the next finds none";
        EXPECT_LT(host_clock().boottime() - before, 2s);
    }
    server->send(SIGCONT);
    EXPECT_EQ(must(store->apply_one(by_bob(lock("y")), MysqlPlace::soon())).lock.seq, 1U);
}

}  // namespace
}  // namespace holdfast::tests
