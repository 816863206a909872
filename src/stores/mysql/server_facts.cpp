#include "stores/mysql/server_facts.hpp"

#include <fmt/format.h>

namespace holdfast::stores::mysql {
namespace {

Flavour flavour_of(std::string_view version) {
    if (version.find("TiDB") != std::string_view::npos) return Flavour::tidb;
    if (version.find("MariaDB") != std::string_view::npos) return Flavour::mariadb;
    return Flavour::mysql;
}

/// Sets every variable that matters, because a user, a database or an init_connect may have changed any of them.
///
/// Without autocommit a statement whose values are bound, which travels by itself, needs no other before it to begin
/// the transaction. So every packet that reads or writes tables ends its transaction.
///
/// Lock waits are short, so that the deadline of a call is looked at in between. A transaction of ours takes
/// milliseconds; when its owner is frozen in the middle, the server ends it and lets the others go on. For that MySQL
/// has only the time that any connection may idle. Lists of names are always looked up by key, so nobody needs to count
/// how many rows each of them has (`eq_range_index_dive_limit`).
Sql settings_for(Flavour flavour) {
    Sql sql(
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 0, completion_type = 0, "
        "sql_select_limit = DEFAULT, innodb_lock_wait_timeout = 1, lock_wait_timeout = 2, time_zone = '+00:00', ");
    switch (flavour) {
        case Flavour::mariadb:
            sql << "wait_timeout = 600, idle_transaction_timeout = 10, eq_range_index_dive_limit = 1";
            break;
        case Flavour::mysql: sql << "wait_timeout = 60, eq_range_index_dive_limit = 1"; break;
        case Flavour::tidb: sql << "wait_timeout = 60, tidb_txn_mode = 'pessimistic'"; break;
    }
    return sql << "; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET SESSION TRANSACTION READ WRITE";
}

Sql questions_for(Flavour flavour) {
    Sql sql(
        "SELECT @@global.read_only, @@innodb_read_only, @@global.innodb_flush_log_at_trx_commit, @@log_bin, "
        "@@global.sync_binlog, ");
    // Asked only with a binary log, since without one there are no replicas: to show one counter the server computes
    // all of them.
    if (flavour == Flavour::mariadb)
        return sql << "@@global.wsrep_on, IF(@@log_bin, (SELECT variable_value FROM information_schema.global_status "
                      "WHERE variable_name = 'SLAVES_CONNECTED'), 0)";
    return sql << "0, 0";
}

/// Variables come as 0 and 1, or as words.
bool is_on(std::string_view value) { return !value.empty() && value != "0" && value != "OFF"; }

}  // namespace

base::Grading grading_of(const ServerFacts& facts) {
    base::Grading grading;
    if (facts.galera) grading.lower(Grade::c, "a Galera cluster can lose committed transactions");
    if (facts.flavour != Flavour::tidb) {
        if (facts.flush_at_commit != 1)
            grading.lower(
                Grade::b,
                fmt::format("innodb_flush_log_at_trx_commit is {}, so a power cut can take back the last grants",
                            facts.flush_at_commit));
        if (facts.binlog && facts.sync_binlog != 1)
            grading.lower(
                Grade::b,
                fmt::format("there is a binary log and sync_binlog is {}, so a power cut can take back the last grants",
                            facts.sync_binlog));
        if (facts.replicas > 0)
            grading.lower(Grade::b, "there are replicas, and a failover to one can lose the last grants");
    }
    grading.explain(facts.flavour == Flavour::tidb
                        ? "a majority of the cluster has every grant before it is acknowledged"
                        : "every grant is on the server's disk before it is acknowledged");
    return grading;
}

std::expected<ServerFacts, Failure> set_up(Connection& connection, Deadline deadline) {
    ServerFacts facts;
    facts.version = connection.server_version();
    facts.flavour = flavour_of(facts.version);
    facts.encrypted = connection.encrypted();
    facts.skips_locked = (facts.flavour == Flavour::mariadb && connection.version_number() >= 100600) ||
                         (facts.flavour == Flavour::mysql && connection.version_number() >= 80001);
    Sql sql = settings_for(facts.flavour);
    auto answers = connection.run(sql << "; " << questions_for(facts.flavour), deadline);
    if (!answers) return std::unexpected(answers.error());
    const auto row = answers->back().next();
    if (!row) return std::unexpected(Failure{0, "it does not answer questions about its settings"});
    facts.read_only = is_on(row->text(0)) || is_on(row->text(1));
    facts.flush_at_commit = row->number(2);
    facts.binlog = is_on(row->text(3));
    facts.sync_binlog = row->number(4);
    facts.galera = is_on(row->text(5));
    facts.replicas = row->number(6);
    return facts;
}

Sql now_of(const Clock& clock) {
    if (const auto judged = clock.judges()) return Sql() << *judged;
    return Sql(now_of_server);
}

}  // namespace holdfast::stores::mysql
