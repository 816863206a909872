#include "harness/clients.hpp"
#include "harness/socket_load.hpp"
#include "measures/measures.hpp"
#include "peers/mysql_row.hpp"
#include "peers/sqlite_row.hpp"
#include "peers/tools.hpp"
#include "support/mysql_by_hand.hpp"
#include "support/servers/kinds.hpp"

#include <array>

namespace holdfast::bench {
namespace {

constexpr int batch = 100;

Contender over_sockets(std::string name, const tests::Server& server, int connections, Dialect dialect) {
    return {std::move(name), [&server, connections, dialect = std::move(dialect)] {
                return pairs_over_sockets(server.port(), connections, dialect, pair_round);
            }};
}

/// A daemon in front of a server, beside what people would keep in that server.
std::vector<Line> behind_daemon(const Site& site, const std::string& id, const std::string& server,
                                const std::string& url, const Contender& peer, double goal) {
    const auto daemon = tests::start_daemon(url);
    const auto store = opened("http://127.0.0.1:" + std::to_string(daemon->port()));
    const Clients library = library_clients(*store, pair_clients);
    // Each round its own names, which the daemon's store has not seen.
    const Contender sockets{"daemon, 32 connections",
                            [&] { return pairs_over_sockets(daemon->port(), pair_clients, daemon_api(), pair_round); }};
    const Contender batches{"daemon, batches of 100",
                            [&] { return pairs_over_sockets(daemon->port(), 2, daemon_api(batch), pair_round); }};
    const Contender through{"library through the daemon, 32 threads",
                            [&] { return pairs_per_second(library, pair_round); }};
    const std::array contenders{peer, sockets, batches, through};
    const auto series = alternate(id + " daemon on " + server, contenders, site.rounds);
    return {{id, server + " behind a daemon, 32 connections", "/s", peer.name, series[0], series[1], at_least(goal)},
            {id, server + " behind a daemon, batches of 100", "/s", peer.name, series[0], series[2]},
            {id, server + " behind a daemon, library", "/s", peer.name, series[0], series[3]}};
}

}  // namespace

std::vector<Line> measure_daemon_pairs(const Site& site) {
    const auto redis = tests::start_redis_server({.arguments = {"--appendonly", "no"}, .environment = {}});
    const auto daemon = tests::start_daemon();
    const std::array contenders{
        over_sockets("raw Redis without persistence", *redis, pair_clients,
                     raw_redis(std::string(tests::server_password))),
        Contender{"daemon, 32 connections",
                  [&] { return pairs_over_sockets(daemon->port(), pair_clients, daemon_api(), pair_round); }}};
    const auto series = alternate("P3 daemon", contenders, site.rounds);
    return {{"P3", "daemon on durable SQLite, 32 connections", "/s", contenders[0].name, series[0], series[1],
             at_least(1.0)}};
}

std::vector<Line> measure_daemon_batches(const Site& site) {
    Clients rows;
    rows.push_back(sqlite_row((site.folder / "batches.db").string(), "FULL", batch));
    const auto daemon = tests::start_daemon();
    const std::array contenders{
        Contender{"SQLite lease rows, 100 pairs a transaction", [&] { return pairs_per_second(rows, pair_round); }},
        Contender{"daemon, batches of 100",
                  [&] { return pairs_over_sockets(daemon->port(), 2, daemon_api(batch), pair_round); }}};
    const auto series = alternate("P4 batches", contenders, site.rounds);
    return {{"P4", "daemon on durable SQLite, batches of 100", "/s", contenders[0].name, series[0], series[1],
             at_least(0.5)}};
}

std::vector<Line> measure_daemon_on_postgres(const Site& site) {
    const PgBench peer(tests::shared_server_port("postgres"), site.folder, pair_clients, pair_threads);
    return behind_daemon(site, "P6", "PostgreSQL", fresh_store(site, "postgres"),
                         {"pgbench lease row", [&] { return peer.pairs_per_second(); }}, 3.0);
}

std::vector<Line> measure_daemon_on_mysql(const Site& site) {
    const auto port = tests::shared_server_port("mysql");
    const tests::MysqlDatabase database(port);
    const Clients rows = mysql_rows(port, database.name(), pair_clients);
    return behind_daemon(site, "P7", "MariaDB", fresh_store(site, "mysql"),
                         {"MariaDB lease row", [&] { return pairs_per_second(rows, pair_round); }}, 2.5);
}

}  // namespace holdfast::bench
