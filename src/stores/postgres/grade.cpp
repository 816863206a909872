#include "stores/postgres/grade.hpp"

#include "stores/postgres/read.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

namespace holdfast::stores::postgres {
namespace {

using std::chrono::milliseconds;

/// Leases do not depend on this host's clock, but the times that people read do.
constexpr milliseconds most_difference{60'000};

bool may_lose_failover(const Facts& facts) { return facts.standbys > 0 && facts.synchronous_standbys.empty(); }

std::string replication(const Facts& facts) {
    if (!facts.synchronous_standbys.empty()) return "synchronous: " + facts.synchronous_standbys;
    if (facts.standbys == 0) return "no standby";
    return fmt::format("{} standby(s), none of them synchronous: a failover can lose the last grants", facts.standbys);
}

Finding clock_difference(const Facts& facts, const Clock& clock) {
    const milliseconds difference = facts.now - clock.wall();
    const milliseconds size = difference < milliseconds{0} ? -difference : difference;
    const std::string_view side = difference < milliseconds{0} ? "behind" : "ahead of";
    return {"clock", size <= most_difference, fmt::format("{} {} this host", to_words(size), side)};
}

Finding setting(std::string name, bool on, std::string_view danger) {
    return {std::move(name), on, on ? "on" : fmt::format("off: {}", danger)};
}

}  // namespace

Result<Facts> facts_of(Connection& connection, const Clock& clock, const base::CallBudget& budget) {
    Statement ask(
        "SELECT current_setting('server_version'), current_setting('fsync') = 'on', "
        "current_setting('full_page_writes') = 'on', current_setting('synchronous_commit'), "
        "current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_catalog.pg_stat_replication), "
        "pg_is_in_recovery(), COALESCE($1::int8, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8)");
    const Trip trip = connection.run(ask.bind(judged(clock)), budget);
    if (trip.fault) return std::unexpected(error_of(*trip.fault, "ask the server about itself"));
    const Rows& rows = trip.answers.front();
    return Facts{.version = std::string(rows.text(0, 0)),
                 .fsync = rows.flag(0, 1),
                 .full_page_writes = rows.flag(0, 2),
                 .synchronous_commit = std::string(rows.text(0, 3)),
                 .synchronous_standbys = std::string(rows.text(0, 4)),
                 .standbys = rows.number(0, 5),
                 .in_recovery = rows.flag(0, 6),
                 .pooled = connection.is_pooled(),
                 .now = Instant(milliseconds(rows.number(0, 7)))};
}

base::Grading grading_of(const Facts& facts) {
    base::Grading grading;
    if (!facts.fsync) grading.lower(Grade::c, "fsync is off: a crash of the host can damage the whole database");
    if (!facts.full_page_writes) grading.lower(Grade::b, "full_page_writes is off: a power cut can damage a page");
    if (may_lose_failover(facts)) grading.lower(Grade::b, replication(facts));
    grading.explain("every change is synced to the disk before it is acknowledged");
    grading.explain(replication(facts));
    return grading;
}

std::vector<Finding> findings_of(const Facts& facts, const Clock& clock) {
    std::vector<Finding> findings;
    findings.push_back({"version", true, facts.version});
    findings.push_back(clock_difference(facts, clock));
    findings.push_back(setting("fsync", facts.fsync, "a crash of the host can damage the whole database"));
    findings.push_back(setting("full_page_writes", facts.full_page_writes, "a power cut can damage a page"));
    const bool durable = facts.synchronous_commit == "on" || facts.synchronous_commit == "remote_apply";
    findings.push_back({"synchronous_commit", true,
                        durable ? facts.synchronous_commit
                                : fmt::format("{} for this role; changes of locks use on", facts.synchronous_commit)});
    findings.push_back({"replication", !may_lose_failover(facts), replication(facts)});
    findings.push_back({"recovery", !facts.in_recovery, facts.in_recovery ? "a standby" : "takes writes"});
    findings.push_back(
        {"pooler", true,
         facts.pooled ? "behind a connection pooler: no wake-ups, waiters look once a second" : "a direct connection"});
    return findings;
}

std::vector<Finding> examine_use(Connection& connection, const Settings& settings, bool is_marked,
                                 const base::CallBudget& budget) {
    const std::string schema = settings.quoted_schema();
    // Only the first lock of a store needs this right.
    const std::string mark = is_marked ? ""
                                       : fmt::format(
                                             " UNION ALL SELECT 'meta', 'UPDATE (used)' WHERE NOT "
                                             "has_column_privilege('{}.meta', 'used', 'UPDATE')",
                                             schema);
    const Statement rights(fmt::format(
        "SELECT COALESCE(string_agg(p.privilege || ' on ' || p.name, ', ') FILTER (WHERE p.name <> 'audit' OR "
        "p.privilege <> 'DELETE'), ''), COALESCE(bool_or(p.privilege = 'DELETE' AND p.name = 'audit'), false) FROM "
        "(SELECT v.name, v.privilege FROM "
        "(VALUES ('meta', 'SELECT'), ('locks', 'SELECT'), ('locks', 'INSERT'), ('locks', 'UPDATE'), "
        "('queue', 'SELECT'), ('queue', 'INSERT'), ('queue', 'UPDATE'), ('queue', 'DELETE'), ('audit', 'SELECT'), "
        "('audit', 'INSERT'), ('audit', 'DELETE')) AS v (name, privilege) "
        "WHERE NOT has_table_privilege('{}.' || v.name, v.privilege){}) AS p",
        schema, mark));
    const Trip asked = connection.run(rights, budget);
    if (asked.fault) return {{"rights", false, error_of(*asked.fault, "ask for the rights of this role").message}};
    const std::string missing(asked.answers.front().text(0, 0));
    const bool prunes = !asked.answers.front().flag(0, 1);
    std::vector<Finding> findings{{"rights", missing.empty(),
                                   !missing.empty() ? "this role lacks " + missing
                                   : prunes         ? "this role may do all that the store needs"
                                                    : "this role may do all but prune (DELETE on audit)"}};
    if (!missing.empty()) return findings;
    // The row of a lock that cannot exist: no name has a control character.
    const std::vector<Statement> change{
        Statement("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"),
        Statement("SELECT set_config('statement_timeout', $1, true)").bind(std::to_string(budget.left().count())),
        Statement(fmt::format("INSERT INTO {}.locks (name) VALUES ('\\x01'::bytea) ON CONFLICT DO NOTHING", schema)),
        Statement("ROLLBACK")};
    const Trip changed = connection.run(change, budget);
    if (changed.fault) connection.send_only(Statement("ROLLBACK"));
    findings.push_back(
        {"writes", !changed.fault, changed.fault ? error_of(*changed.fault, "change a lock").message : "accepted"});
    return findings;
}

}  // namespace holdfast::stores::postgres
