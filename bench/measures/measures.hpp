#pragma once

#include "harness/comparison.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::bench {

/// Where the programs are, and where stores may be made.
struct Site {
    std::string holdfast;         ///< The command.
    std::string stamp;            ///< See stamp.cpp.
    std::filesystem::path peers;  ///< Those that are no C++; see scripts/build-peers.sh.
    std::filesystem::path folder;
    int rounds = 7;
    int growth = 0;           ///< Locks of the large store in P10.
    int csv_megabytes = 100;  ///< Of the large file in P13.
};

/// How pairs are measured: by so many clients, on so many threads where the peer has threads, for so long.
inline constexpr int pair_clients = 32;
inline constexpr int pair_threads = 2;
inline constexpr std::chrono::milliseconds pair_round{1000};
[[nodiscard]] inline Goal at_least(double ratio) { return {ratio, Better::higher}; }

/// The URL of a store that nobody has used: `sqlite` and `file` in the site's folder, the others in a server that is
/// started when it is first needed and ends with the program.
[[nodiscard]] std::string fresh_store(const Site& site, std::string_view kind);
/// For a database, a schema or a table that nobody has used. SQL takes it without quotes.
[[nodiscard]] std::string fresh_name();

/// P1: a command under a lock.
[[nodiscard]] std::vector<Line> measure_run(const Site& site);
/// P2, P5 to P8: acquire and release by one client, and by 32 at once.
[[nodiscard]] std::vector<Line> measure_sqlite_pairs(const Site& site);
[[nodiscard]] std::vector<Line> measure_redis_pairs(const Site& site);
[[nodiscard]] std::vector<Line> measure_postgres_pairs(const Site& site);
[[nodiscard]] std::vector<Line> measure_mysql_pairs(const Site& site);
[[nodiscard]] std::vector<Line> measure_etcd_pairs(const Site& site);
/// P3: single requests to a daemon on SQLite; P4: batches; P6 and P7 through a daemon.
[[nodiscard]] std::vector<Line> measure_daemon_pairs(const Site& site);
[[nodiscard]] std::vector<Line> measure_daemon_batches(const Site& site);
[[nodiscard]] std::vector<Line> measure_daemon_on_postgres(const Site& site);
[[nodiscard]] std::vector<Line> measure_daemon_on_mysql(const Site& site);
/// P11: what many held locks, waiters and readers of events do to the others, and to the daemon's memory.
[[nodiscard]] std::vector<Line> measure_daemon_crowd(const Site& site);
/// P9: from one holder to the next, with eight waiters.
[[nodiscard]] std::vector<Line> measure_handover(const Site& site);
/// P10: what the size of a store does to what it costs.
[[nodiscard]] std::vector<Line> measure_growth(const Site& site);
/// P12: snapshots of a tree, beside a copy of it.
[[nodiscard]] std::vector<Line> measure_snapshots(const Site& site);
/// P13: many migrations, and what others wait for meanwhile.
[[nodiscard]] std::vector<Line> measure_migrations(const Site& site);
/// P13: a large CSV file, and what it takes of memory.
[[nodiscard]] std::vector<Line> measure_data(const Site& site);
/// P14: how soon the next holder comes after a `run` that was killed.
[[nodiscard]] std::vector<Line> measure_crash(const Site& site);

}  // namespace holdfast::bench
