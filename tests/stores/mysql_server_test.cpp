// Goal: the store says what its server promises, refuses the ones that promise nothing, tells no secrets, and outlives
// a server that is killed or stopped. Method: servers of this test's own.
#include "stores/mysql_fixture.hpp"
#include "support/run_settings.hpp"

#include <fmt/format.h>

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <sys/socket.h>
#include <thread>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

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
    EXPECT_THAT(open_store(place.database.url()), RefusedWith(Errc::store_unavailable));
    place.shell.run("SET GLOBAL read_only = 0");
    EXPECT_THAT(open_store(place.database.url()), Granted());
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

TEST(MysqlServer, TlsTrustsOnlyWhomItWasToldTo) {
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

// A server that does not answer is given up at the deadline, before anything is sent and after.
TEST(MysqlServer, AStoppedServerCostsNoMoreThanTheDeadline) {
    const auto server = start_mariadb_server();
    MysqlPlace place(server->port());
    const auto store = place.open();
    must(store->apply_one(by_alice(lock("x")), MysqlPlace::soon()));
    server->send(SIGSTOP);
    for (int i = 0; i < 2; ++i) {
        const Boottime before = host_clock().boottime();
        const Reply reply = store->apply_one(by_bob(lock("y")), Deadline::in(host_clock(), 300ms));
        EXPECT_THAT(reply, RefusedWith(Errc::store_unavailable));
        EXPECT_LT(host_clock().boottime() - before, 2s);
    }
    server->send(SIGCONT);
    EXPECT_THAT(store->apply_one(by_bob(lock("y")), MysqlPlace::soon()), Granted());
}

/// What clients were told about one lock, to be compared with what is there afterwards.
class Ledger {
public:
    void granted(const LockName& name, FencingToken token, const LockId& lock_id) {
        const std::scoped_lock lock(mutex_);
        const auto [known, fresh] = tokens_[name].emplace(token.value, lock_id);
        if (!fresh && known->second != lock_id) ++repeated_;
    }
    void unavailable(const LockId& lock_id) {
        const std::scoped_lock lock(mutex_);
        unavailable_.insert(lock_id);
    }
    [[nodiscard]] int repeated() const { return repeated_; }
    /// Those who were told that nothing had been changed.
    [[nodiscard]] const std::set<LockId>& unavailable() const { return unavailable_; }
    [[nodiscard]] const std::map<LockName, std::map<std::uint64_t, LockId>>& tokens() const { return tokens_; }

private:
    std::mutex mutex_;
    std::map<LockName, std::map<std::uint64_t, LockId>> tokens_{};  ///< Guarded by mutex_.
    std::set<LockId> unavailable_{};                                ///< Guarded by mutex_.
    int repeated_ = 0;                                              ///< Guarded by mutex_.
};

TEST(MysqlServer, KilledUnderLoadItLosesNoGrantAndRepeatsNoToken) {
    const auto server = start_mariadb_server();
    MysqlPlace place(server->port());
    const auto store = place.open();
    Ledger ledger;
    std::atomic<int> answers = 0;
    std::atomic<int> unknown = 0;
    std::atomic<int> unavailable = 0;
    std::mt19937_64 random(seed_of("mysql/server-kill"));
    const int kills = scaled(20);
    {
        std::vector<std::jthread> clients;
        for (int i = 0; i < 8; ++i)
            clients.emplace_back([&, i](const std::stop_token& stop) {
                const LockName name = lock("lock " + std::to_string(i % 4));
                while (!stop.stop_requested()) {
                    const Acquire mine = by("client", name, 200ms);
                    const Reply reply = store->apply_one(mine, Deadline::in(host_clock(), 2s));
                    if (reply) ++answers;
                    if (reply) ledger.granted(name, reply->lock.token, mine.as.lock_id);
                    if (reply) static_cast<void>(store->apply_one(release(mine), Deadline::in(host_clock(), 2s)));
                    if (!reply && reply.error().code == Errc::outcome_unknown) ++unknown;
                    if (!reply && reply.error().code == Errc::store_unavailable) {
                        ++unavailable;
                        ledger.unavailable(mine.as.lock_id);
                        std::this_thread::sleep_for(20ms);
                    }
                }
            });
        for (int kill = 0; kill < kills; ++kill) {
            // They come back by themselves: every round waits for grants by the same Store object.
            const int before = answers;
            const auto give_up = std::chrono::steady_clock::now() + 30s;
            while (answers < before + 20 && std::chrono::steady_clock::now() < give_up)
                std::this_thread::sleep_for(5ms);
            ASSERT_GE(answers, before + 20) << "the clients did not recover";
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 50));
            server->kill();
            server->start();
        }
    }
    fmt::print("{} kills: {} grants, {} of unknown outcome, {} times unavailable\n", kills, answers.load(),
               unknown.load(), unavailable.load());
    EXPECT_EQ(ledger.repeated(), 0);
    for (const auto& [name, tokens] : ledger.tokens()) {
        std::map<std::uint64_t, LockId> stored;
        const auto events = must(store->history({.name = name}, MysqlPlace::soon()));
        for (const AuditEvent& event : events) {
            stored.emplace(event.token.value, event.lock_id);
            EXPECT_FALSE(ledger.unavailable().contains(event.lock_id)) << "what was not done was done";
        }
        for (const auto& [token, lock_id] : tokens) {
            ASSERT_TRUE(stored.contains(token)) << "an acknowledged grant is gone";
            EXPECT_EQ(stored[token], lock_id);
        }
        EXPECT_THAT(verify_chain(events, must(store->inspect(name, MysqlPlace::soon()))), Granted());
    }
    EXPECT_GT(unavailable, 0) << "no client noticed";
}

}  // namespace
}  // namespace holdfast::tests
