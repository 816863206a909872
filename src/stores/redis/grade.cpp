#include "stores/redis/grade.hpp"

#include "base/real_clock.hpp"
#include "stores/redis/rights.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace holdfast::stores::redis {
namespace {

using std::chrono::milliseconds;

constexpr int oldest_version = 5;
constexpr milliseconds most_difference{1000};

/// The lines `name:value` of INFO, and the pairs of CONFIG GET where that is permitted.
class Facts {
public:
    void add_info(std::string_view text) {
        while (!text.empty()) {
            const std::string_view line = text.substr(0, text.find("\r\n"));
            text.remove_prefix(std::min(line.size() + 2, text.size()));
            const auto colon = line.find(':');
            if (colon != std::string_view::npos) facts_.emplace(line.substr(0, colon), line.substr(colon + 1));
        }
    }
    void add_config(Value list) {
        for (std::size_t i = 0; i + 1 < list.size(); i += 2)
            facts_.emplace("config " + std::string(list[i].text()), list[i + 1].text());
    }
    /// Empty if the server did not say.
    [[nodiscard]] std::string operator[](std::string_view name) const {
        const auto found = facts_.find(name);
        return found == facts_.end() ? "" : found->second;
    }

private:
    std::map<std::string, std::string, std::less<>> facts_{};
};

/// Adds a finding, and its effect on the grade if the check fails.
void judge(ServerGrading& grading, Finding finding, Grade at_best) {
    if (!finding.ok) grading.lower(at_best, finding.detail);
    grading.findings.push_back(std::move(finding));
}

void judge_persistence(ServerGrading& grading, const Facts& facts) {
    const bool keeps_log = facts["aof_enabled"] == "1";
    judge(grading,
          {"append_only_file", keeps_log,
           keeps_log ? "on" : "there is no append-only file (appendonly no): a crash of Redis takes grants back"},
          Grade::c);
    if (!keeps_log) return;
    const std::string sync = facts["config appendfsync"];
    const bool always = sync == "always";
    judge(grading,
          {"appendfsync", always,
           always         ? "always"
           : sync.empty() ? "Redis does not say how often it syncs (CONFIG GET is not permitted)"
                          : fmt::format("appendfsync is {}: a power cut takes the last grants back", printable(sync))},
          Grade::b);
    if (facts["config no-appendfsync-on-rewrite"] == "yes")
        judge(grading, {"sync_on_rewrite", false, "nothing is synced while the append-only file is rewritten"},
              Grade::b);
    if (facts["aof_last_write_status"] == "err")
        judge(grading, {"disk", false, "the append-only file could not be written: is the disk full?"}, Grade::c);
}

void judge_copies(ServerGrading& grading, const Facts& facts) {
    const std::string replicas = facts["connected_slaves"];
    const bool alone = replicas == "0";
    judge(grading,
          {"replicas", alone,
           alone ? "none" : fmt::format("{} replicas: a failover takes the last grants back", printable(replicas))},
          Grade::b);
    const bool is_cluster = facts["cluster_enabled"] == "1";
    judge(grading,
          {"cluster", !is_cluster,
           is_cluster ? "part of a cluster: all locks are on one node, and a failover takes the last grants back"
                      : "off"},
          Grade::b);
}

/// At its memory limit the server must refuse writes and not evict keys.
Finding memory_of(const Facts& facts) {
    constexpr double mebi = 1024.0 * 1024.0;
    const double used = std::strtod(facts["used_memory"].c_str(), nullptr);
    const double most = std::strtod(facts["maxmemory"].c_str(), nullptr);
    if (most <= 0) return {"memory", true, fmt::format("{:.1f} MiB used, without a limit (maxmemory 0)", used / mebi)};
    const bool is_full = used >= most;
    return {"memory", !is_full,
            fmt::format("{:.1f} of {:.1f} MiB used{}", used / mebi, most / mebi,
                        is_full ? ": Redis is out of memory, so nothing is acquired or renewed; raise maxmemory, or "
                                  "prune the audit log"
                                : "")};
}

Finding rights_of(const std::optional<std::vector<std::string>>& missing) {
    if (!missing) return {"rights", true, "not known: Redis can be asked since 7.0"};
    return {"rights", missing->empty(),
            missing->empty()
                ? "this user may run all that the store needs"
                : fmt::format("this user may not run {}, so nothing is changed", fmt::join(*missing, ", "))};
}

void judge_memory(ServerGrading& grading, const Facts& facts) {
    const std::string policy = facts["maxmemory_policy"];
    const bool keeps = !policy.starts_with("allkeys");
    judge(grading,
          {"eviction", keeps,
           keeps ? printable(policy) : fmt::format("maxmemory-policy {} may evict locks", printable(policy))},
          Grade::c);
}

Finding transport_of(const Address& address) {
    if (address.tls == Tls::verified) return {"transport", true, "TLS, the server was verified"};
    if (address.tls == Tls::unverified) return {"transport", false, "TLS, but nobody checks who answers (tls=off)"};
    if (address.is_loopback()) return {"transport", true, "plain, on this host"};
    return {"transport", false, "plain: others on the way can read and change everything; use rediss://"};
}

Finding clock_of(Value time) {
    const auto seconds = time[0].number();
    const auto microseconds = time[1].number();
    if (!seconds || !microseconds) return {"clock", false, "Redis does not tell the time"};
    const milliseconds theirs{static_cast<std::int64_t>(*seconds * 1000 + *microseconds / 1000)};
    const milliseconds difference = theirs - base::real_clock().wall().time_since_epoch();
    const bool near = difference < most_difference && difference > -most_difference;
    // Not part of the grade: the server's clock alone judges.
    return {"clock", near, fmt::format("{} ms from this host's", difference.count())};
}

}  // namespace

std::string program_in(std::string_view info) {
    Facts facts;
    facts.add_info(info);
    if (facts["server_name"] == "valkey") return "Valkey " + printable(facts["valkey_version"]);
    return "Redis " + printable(facts["redis_version"]);
}

Error lacking(const Address& address, const std::vector<std::string>& missing_rights) {
    return {Errc::denied,
            fmt::format("Redis at {} does not permit this user to run {}, which every change needs; nothing was "
                        "changed. Let an administrator permit it (ACL SETUSER)",
                        address.place(), fmt::join(missing_rights, ", "))};
}

Finding examine_writing(Server& server, const Keys& keys, Deadline deadline) {
    // XX changes only an existing key, and no lock has an empty name, so nothing changes.
    const auto answer = server.ask({"ZADD", keys.held(), "XX", "0", ""}, deadline);
    return {"writes", answer.has_value(), answer ? "accepted" : answer.error().message};
}

Result<ServerGrading> grading_of(Server& server, const Keys& keys, Deadline deadline) {
    const std::vector<Command> questions{{"INFO"},
                                         {"TIME"},
                                         {"CONFIG", "GET", "appendfsync"},
                                         {"CONFIG", "GET", "no-appendfsync-on-rewrite"},
                                         ask_rights(keys)};
    const auto answers = server.exchange(questions, Effect::none, deadline);
    if (!answers) return std::unexpected(answers.error());
    const auto answer = [&](std::size_t i) { return (*answers)[i].value(); };
    for (const std::size_t needed : {0U, 1U})
        if (answer(needed).is_error()) return std::unexpected(refusal(server.address(), answer(needed).text()));

    Facts facts;
    facts.add_info(answer(0).text());
    facts.add_config(answer(2));
    facts.add_config(answer(3));
    const std::string version = facts["redis_version"];
    if (std::atoi(version.c_str()) < oldest_version)
        return fail(Errc::store_unsafe, fmt::format("Redis at {} is version {}; its scripts are safe since 5.0",
                                                    server.address().place(), printable(version)));
    ServerGrading grading;
    grading.findings.push_back({"server", true, program_in(answer(0).text())});
    judge_persistence(grading, facts);
    judge_copies(grading, facts);
    judge_memory(grading, facts);
    grading.findings.push_back(memory_of(facts));
    const auto missing = missing_rights(answer(4));
    grading.findings.push_back(rights_of(missing));
    grading.missing_rights = missing.value_or(std::vector<std::string>{});
    grading.findings.push_back(transport_of(server.address()));
    grading.findings.push_back(clock_of(answer(1)));
    grading.explain("one Redis that syncs its append-only file before it answers");
    return grading;
}

}  // namespace holdfast::stores::redis
