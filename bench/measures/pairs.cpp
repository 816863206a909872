#include "harness/clients.hpp"
#include "measures/measures.hpp"
#include "peers/etcd_lock.hpp"
#include "peers/mysql_row.hpp"
#include "peers/sqlite_row.hpp"
#include "peers/tools.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/servers/kinds.hpp"

#include <array>

namespace holdfast::bench {
namespace {

constexpr int many = 32;
constexpr int threads = 2;
constexpr std::chrono::milliseconds a_round{1000};

Contender contender(std::string name, const Clients& clients) {
    return {std::move(name), [&] { return pairs_per_second(clients, a_round); }};
}

Goal at_least(double ratio) { return {ratio, Better::higher}; }

/// A peer, the library by 32 threads with one lock each, and by two threads that speak for 16 clients each, as a
/// program does that gathers what its clients want.
std::vector<Line> beside(const Site& site, const Contender& peer, const std::string& id, const std::string& server,
                         const std::string& kind, double goal) {
    const auto store = opened(fresh_store(site, kind));
    const Clients single = library_clients(*store, many);
    const Clients gathered = library_clients(*store, threads, many / threads);
    const std::array contenders{peer, contender("library, 32 threads", single),
                                contender("library, 2 threads with 16 clients each", gathered)};
    const auto series = alternate(id + " " + server, contenders, site.rounds);
    return {{id, server + ", 32 threads", "/s", peer.name, series[0], series[1], at_least(goal)},
            {id, server + ", 2 threads with 16 clients each", "/s", peer.name, series[0], series[2]}};
}

}  // namespace

std::vector<Line> measure_sqlite_pairs(const Site& site) {
    const auto one = [](std::unique_ptr<Client> client) {
        Clients clients;
        clients.push_back(std::move(client));
        return clients;
    };
    const Clients full = one(sqlite_row((site.folder / "row.db").string(), "FULL"));
    const Clients off = one(sqlite_row((site.folder / "row-off.db").string(), "OFF"));
    const auto durable = opened(fresh_store(site, "sqlite"));
    const auto quick = opened(fresh_store(site, "sqlite") + "?sync=off");
    const Clients durable_client = library_clients(*durable, 1);
    const Clients quick_client = library_clients(*quick, 1);
    const std::array contenders{contender("SQLite lease row", full), contender("library", durable_client),
                                contender("SQLite lease row", off), contender("library, sync=off", quick_client)};
    const auto series = alternate("P2 SQLite", contenders, site.rounds);
    return {{"P2", "SQLite, 1 client, WAL FULL", "/s", contenders[0].name, series[0], series[1], at_least(0.7)},
            {"P2", "SQLite, 1 client, WAL OFF", "/s", contenders[2].name, series[2], series[3]}};
}

std::vector<Line> measure_redis_pairs(const Site& site) {
    const RedisBenchmark peer(tests::shared_server_port("redis"), many, threads);
    // A pair is two calls, one of which the peer does not make.
    const Contender calls{"EVALSHA acquire, half the calls", [&] { return peer.calls_per_second() / 2; }};
    return beside(site, calls, "P5", "Redis, AOF always", "redis", 0.9);
}

std::vector<Line> measure_postgres_pairs(const Site& site) {
    const PgBench peer(tests::shared_server_port("postgres"), site.folder, many, threads);
    const Contender row{"pgbench lease row", [&] { return peer.pairs_per_second(); }};
    return beside(site, row, "P6", "PostgreSQL", "postgres", 1.0);
}

std::vector<Line> measure_mysql_pairs(const Site& site) {
    const auto port = tests::shared_server_port("mysql");
    const tests::MysqlDatabase database(port);
    const Clients rows = mysql_rows(port, database.name(), many);
    return beside(site, contender("MariaDB lease row", rows), "P7", "MariaDB", "mysql", 1.0);
}

std::vector<Line> measure_etcd_pairs(const Site& site) {
    const Clients locks = etcd_locks(tests::shared_server_port("etcd"), many);
    return beside(site, contender("etcd v3lock", locks), "P8", "etcd", "etcd", 1.0);
}

}  // namespace holdfast::bench
