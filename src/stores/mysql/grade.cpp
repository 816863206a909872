#include "stores/mysql/grade.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <array>

namespace holdfast::stores::mysql {
namespace {

using std::chrono::milliseconds;

/// Our clock judges nothing, but people compare the server's times with it.
constexpr milliseconds tolerable{5000};

Finding durability_of(const ServerFacts& facts) {
    if (facts.flavour == Flavour::tidb) return {"flush", true, "by the majority of a TiDB cluster"};
    return {"flush", facts.flush_at_commit == 1,
            fmt::format("innodb_flush_log_at_trx_commit = {}", facts.flush_at_commit)};
}

Finding binlog_of(const ServerFacts& facts) {
    if (!facts.binlog) return {"binary_log", true, "off"};
    return {"binary_log", facts.sync_binlog == 1, fmt::format("on, sync_binlog = {}", facts.sync_binlog)};
}

Finding tls_of(const ServerFacts& facts, const Address& address) {
    if (facts.encrypted) return {"tls", true, "verified"};
    return {"tls", address.is_private(),
            address.is_private() ? "off, on this host" : "off: who can listen on the way learns the password"};
}

/// A statement that changes nothing, and the right that it needs.
struct Trial {
    Sql::Text statement;
    std::string_view right;
};

constexpr std::array trials{
    Trial{"SELECT 1 FROM holdfast_meta WHERE 1 = 0", "SELECT on holdfast_meta"},
    Trial{"SELECT 1 FROM holdfast_locks WHERE 1 = 0", "SELECT on holdfast_locks"},
    Trial{"INSERT INTO holdfast_locks (name) SELECT '' FROM DUAL WHERE 1 = 0", "INSERT on holdfast_locks"},
    Trial{"UPDATE holdfast_locks SET token = 0 WHERE 1 = 0", "UPDATE on holdfast_locks"},
    Trial{"SELECT 1 FROM holdfast_queue WHERE 1 = 0", "SELECT on holdfast_queue"},
    Trial{"INSERT INTO holdfast_queue (name) SELECT '' FROM DUAL WHERE 1 = 0", "INSERT on holdfast_queue"},
    Trial{"UPDATE holdfast_queue SET number = 0 WHERE 1 = 0", "UPDATE on holdfast_queue"},
    Trial{"DELETE FROM holdfast_queue WHERE 1 = 0", "DELETE on holdfast_queue"},
    Trial{"SELECT 1 FROM holdfast_audit WHERE 1 = 0", "SELECT on holdfast_audit"},
    Trial{"INSERT INTO holdfast_audit (name) SELECT '' FROM DUAL WHERE 1 = 0", "INSERT on holdfast_audit"},
};
/// Only the first lock of a store needs this right.
constexpr Trial marking{"UPDATE holdfast_meta SET used = 1 WHERE 1 = 0", "UPDATE (used) on holdfast_meta"};
constexpr Trial pruning{"DELETE FROM holdfast_audit WHERE 1 = 0", "DELETE on holdfast_audit"};

/// Any other failure says nothing about rights.
bool is_denied(Connection& connection, const Trial& trial, Deadline deadline) {
    const auto answer = connection.run(Sql(trial.statement) << "; COMMIT", deadline);
    return !answer && answer.error().denied();
}

}  // namespace

std::vector<Finding> examine_use(Connection& connection, bool is_marked, Deadline deadline) {
    std::vector<std::string_view> missing;
    for (const Trial& trial : trials)
        if (is_denied(connection, trial, deadline)) missing.push_back(trial.right);
    if (!is_marked && is_denied(connection, marking, deadline)) missing.push_back(marking.right);
    if (!missing.empty()) return {{"rights", false, fmt::format("this user lacks {}", fmt::join(missing, ", "))}};
    std::vector<Finding> findings{{"rights", true,
                                   is_denied(connection, pruning, deadline)
                                       ? "this user may do all but prune (DELETE on holdfast_audit)"
                                       : "this user may do all that the store needs"}};
    // The row of a lock that cannot exist: no name has a control character.
    const auto changed = connection.run(
        Sql("START TRANSACTION; INSERT IGNORE INTO holdfast_locks (name) VALUES (x'01'); ROLLBACK"), deadline);
    // Closing the connection rolls the transaction back.
    if (!changed) connection.discard();
    findings.push_back(
        {"writes", changed.has_value(), changed ? "accepted" : error_of(changed.error(), "change a lock").message});
    return findings;
}

std::vector<Finding> examine_server(const ServerFacts& facts, const Address& address) {
    std::vector<Finding> findings{{"server", true, facts.version}, durability_of(facts), binlog_of(facts)};
    if (facts.read_only)
        findings.push_back({"read_only", false, "the server is read-only: a replica cannot grant locks"});
    findings.push_back({"replicas", facts.replicas == 0,
                        facts.replicas == 0 ? "none that the server tells of"
                                            : fmt::format("{}; a failover can lose the last grants", facts.replicas)});
    findings.push_back({"galera", !facts.galera, facts.galera ? "on: it can lose committed transactions" : "off"});
    findings.push_back(tls_of(facts, address));
    return findings;
}

Finding examine_clock(Instant server, const Clock& clock) {
    const milliseconds ahead = server - clock.judges().value_or(clock.wall());
    const std::string apart = to_words(std::chrono::abs(ahead));
    return {"clock", std::chrono::abs(ahead) < tolerable,
            fmt::format("the server's is {} {} ours", apart, ahead < milliseconds{0} ? "behind" : "ahead of")};
}

}  // namespace holdfast::stores::mysql
