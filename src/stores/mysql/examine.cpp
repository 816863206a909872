#include "stores/mysql/examine.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

namespace holdfast::stores::mysql {
namespace {

using std::chrono::milliseconds;

/// Nothing is judged by our clock, but tokens contain the server's, and people compare the times.
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

}  // namespace

std::vector<Finding> examine_server(const ServerFacts& facts, const Address& address) {
    std::vector<Finding> findings{{"server", true, facts.version}, durability_of(facts), binlog_of(facts)};
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
