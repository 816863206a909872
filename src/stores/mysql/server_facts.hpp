#pragma once

#include "base/grading.hpp"
#include "holdfast/store.hpp"
#include "stores/mysql/connection.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::stores::mysql {

enum class Flavour { mysql, mariadb, tidb };

/// What a server says about itself, as far as our promise depends on it.
struct ServerFacts {
    Flavour flavour = Flavour::mysql;
    std::string version{};
    bool read_only = false;            ///< A replica, in most cases.
    std::int64_t flush_at_commit = 1;  ///< innodb_flush_log_at_trx_commit
    bool binlog = false;
    std::int64_t sync_binlog = 1;
    bool galera = false;
    std::int64_t replicas = 0;  ///< As far as the server shows it.
    bool encrypted = false;
    bool skips_locked = false;  ///< It has SKIP LOCKED.

    /// Several nodes answer, each with a clock of its own.
    [[nodiscard]] bool many_clocks() const { return flavour == Flavour::tidb || galera; }
};

/// The grade of a store on such a server.
[[nodiscard]] base::Grading grading_of(const ServerFacts& facts);

/// Sets the session variables that everything else relies on, and asks for the server's facts.
[[nodiscard]] std::expected<ServerFacts, Failure> set_up(Connection& connection, Deadline deadline);

/// Time in milliseconds of UTC, by the server's clock at the start of the statement that this stands in. Depends on no
/// time zone.
inline constexpr Sql::Text now_of_server =
    "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) DIV 1000";
/// Time in milliseconds of UTC. The server's clock at the start of the statement that this stands in; or,
/// under a clock that judges by itself, that one. Depends on no time zone.
[[nodiscard]] Sql now_of(const Clock& clock);

}  // namespace holdfast::stores::mysql
