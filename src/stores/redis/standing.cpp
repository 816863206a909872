#include "stores/redis/standing.hpp"

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

/// Notes a check, and what it means for the grade if it fails.
void judge(Standing& standing, Finding finding, Grade at_best) {
    if (!finding.ok) standing.reasons.push_back(finding.detail);
    if (!finding.ok) standing.grade = std::max(standing.grade, at_best);
    standing.findings.push_back(std::move(finding));
}

void judge_persistence(Standing& standing, const Facts& facts) {
    const bool keeps_log = facts["aof_enabled"] == "1";
    judge(standing,
          {"append_only_file", keeps_log,
           keeps_log ? "on" : "there is no append-only file (appendonly no): a crash of Redis takes grants back"},
          Grade::c);
    if (!keeps_log) return;
    const std::string sync = facts["config appendfsync"];
    const bool always = sync == "always";
    judge(standing,
          {"appendfsync", always,
           always         ? "always"
           : sync.empty() ? "Redis does not say how often it syncs (CONFIG GET is not permitted)"
                          : fmt::format("appendfsync is {}: a power cut takes the last grants back", printable(sync))},
          Grade::b);
    if (facts["config no-appendfsync-on-rewrite"] == "yes")
        judge(standing, {"sync_on_rewrite", false, "nothing is synced while the append-only file is rewritten"},
              Grade::b);
    if (facts["aof_last_write_status"] == "err")
        judge(standing, {"disk", false, "the append-only file could not be written"}, Grade::c);
}

void judge_copies(Standing& standing, const Facts& facts) {
    const std::string replicas = facts["connected_slaves"];
    const bool alone = replicas == "0";
    judge(standing,
          {"replicas", alone,
           alone ? "none" : fmt::format("{} replicas: a failover takes the last grants back", printable(replicas))},
          Grade::b);
    const bool is_cluster = facts["cluster_enabled"] == "1";
    judge(standing,
          {"cluster", !is_cluster,
           is_cluster ? "part of a cluster: all locks are on one node, and a failover takes the last grants back"
                      : "off"},
          Grade::b);
}

void judge_memory(Standing& standing, const Facts& facts) {
    const std::string policy = facts["maxmemory_policy"];
    const bool keeps = !policy.starts_with("allkeys");
    judge(standing,
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
    const milliseconds difference = theirs - host_clock().wall().time_since_epoch();
    const bool near = difference < most_difference && difference > -most_difference;
    // Not part of the grade: the server's clock alone judges.
    return {"clock", near, fmt::format("{} ms from this host's", difference.count())};
}

}  // namespace

Result<Standing> standing_of(Pool& pool, Deadline deadline) {
    const std::vector<Command> questions{
        {"INFO"}, {"TIME"}, {"CONFIG", "GET", "appendfsync"}, {"CONFIG", "GET", "no-appendfsync-on-rewrite"}};
    const auto answers = pool.exchange(questions, Effect::none, deadline);
    if (!answers) return std::unexpected(answers.error());
    const auto answer = [&](std::size_t i) { return (*answers)[i].value(); };
    for (const std::size_t needed : {0U, 1U})
        if (answer(needed).is_error()) return std::unexpected(refusal(pool.address(), answer(needed).text()));

    Facts facts;
    facts.add_info(answer(0).text());
    facts.add_config(answer(2));
    facts.add_config(answer(3));
    const std::string version = facts["redis_version"];
    if (std::atoi(version.c_str()) < oldest_version)
        return fail(Errc::store_unsafe, fmt::format("Redis at {} is version {}; its scripts are safe since 5.0",
                                                    pool.address().place(), printable(version)));
    Standing standing{.grade = Grade::a};
    standing.findings.push_back({"redis", true, printable(version)});
    judge_persistence(standing, facts);
    judge_copies(standing, facts);
    judge_memory(standing, facts);
    standing.findings.push_back(transport_of(pool.address()));
    standing.findings.push_back(clock_of(answer(1)));
    if (standing.reasons.empty())
        standing.reasons.emplace_back("one Redis that syncs its append-only file before it answers");
    return standing;
}

}  // namespace holdfast::stores::redis
