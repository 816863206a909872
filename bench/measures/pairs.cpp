#include "harness/clients.hpp"
#include "harness/programs.hpp"
#include "measures/measures.hpp"
#include "peers/mysql_row.hpp"
#include "peers/sqlite_row.hpp"
#include "peers/tools.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/servers/kinds.hpp"

#include <array>

namespace holdfast::bench {
namespace {

Contender contender(std::string name, const Clients& clients) {
    return {std::move(name), [&] { return pairs_per_second(clients, pair_round); }};
}

/// A peer that says itself how many pairs it made in a second, with 32 clients.
Contender program(std::string name, std::vector<std::string> command) {
    command.insert(command.end(), {std::to_string(pair_clients), std::to_string(pair_round.count())});
    return {std::move(name), [command] { return std::stod(output_of(command)); }};
}

struct Peer {
    Contender contender;
    double goal;
};

/// Peers, the library by 32 threads with one lock each, and by two threads that speak for 16 clients each, as a
/// program does that gathers what its clients want.
std::vector<Line> beside(const Site& site, const std::vector<Peer>& peers, const std::string& id,
                         const std::string& server, const std::string& kind) {
    const auto store = opened(fresh_store(site, kind));
    const Clients single = library_clients(*store, pair_clients);
    const Clients gathered = library_clients(*store, pair_threads, pair_clients / pair_threads);
    std::vector contenders{contender("library, 32 threads", single),
                           contender("library, 2 threads with 16 clients each", gathered)};
    for (const Peer& peer : peers) contenders.push_back(peer.contender);
    const auto series = alternate(id + " " + server, contenders, site.rounds);
    std::vector<Line> lines;
    for (std::size_t i = 0; i < peers.size(); ++i) {
        const std::string& name = peers[i].contender.name;
        const Series& figures = series[i + 2];
        lines.push_back({id, server + ", 32 threads", "/s", name, figures, series[0], at_least(peers[i].goal)});
        lines.push_back({id, server + ", 2 threads with 16 clients each", "/s", name, figures, series[1]});
    }
    return lines;
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
    const auto port = tests::shared_server_port("redis");
    const RedisBenchmark peer(port, pair_clients, pair_threads);
    // A pair is two calls, one of which the peer does not make.
    const Contender calls{"EVALSHA acquire, half the calls", [&] { return peer.calls_per_second() / 2; }};
    const Contender redlock = program("node-redlock", {"node", (site.peers / "node_redlock.js").string(),
                                                       std::to_string(port), std::string(tests::server_password)});
    return beside(site, {{calls, 0.9}, {redlock, 1.5}}, "P5", "Redis, AOF always", "redis");
}

std::vector<Line> measure_postgres_pairs(const Site& site) {
    const PgBench peer(tests::shared_server_port("postgres"), site.folder, pair_clients, pair_threads);
    const Contender row{"pgbench lease row", [&] { return peer.pairs_per_second(); }};
    return beside(site, {{row, 1.0}}, "P6", "PostgreSQL", "postgres");
}

std::vector<Line> measure_mysql_pairs(const Site& site) {
    const auto port = tests::shared_server_port("mysql");
    const tests::MysqlDatabase database(port);
    const Clients rows = mysql_rows(port, database.name(), pair_clients);
    return beside(site, {{contender("MariaDB lease row", rows), 1.0}}, "P7", "MariaDB", "mysql");
}

std::vector<Line> measure_etcd_pairs(const Site& site) {
    const Contender mutex = program("etcd's Go Mutex", {(site.peers / "etcd_mutex").string(),
                                                        std::to_string(tests::shared_server_port("etcd")), "pairs"});
    return beside(site, {{mutex, 1.0}}, "P8", "etcd", "etcd");
}

}  // namespace holdfast::bench
