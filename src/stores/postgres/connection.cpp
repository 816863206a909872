#include "stores/postgres/connection.hpp"

#include <fmt/format.h>

namespace holdfast::stores::postgres {
namespace {

/// Settings for a session that we do not share, which keeps prepared statements.
Result<void> plan_once(Connection& connection, const base::CallBudget& budget) {
    // The plan of a prepared statement is kept. It is made for the tables as they are then, often empty, and would
    // still scan them when they have grown. Every repeated statement finds its rows by a key, so scans are disabled.
    const Trip trip = connection.run(
        Statement(
            fmt::format("SELECT pg_catalog.set_config(name, value, false) FROM (VALUES "
                        "('search_path', '{}'), ('plan_cache_mode', 'force_generic_plan'), ('enable_seqscan', 'off'), "
                        "('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), "
                        "('enable_material', 'off'), ('jit', 'off')) AS s (name, value)",
                        safe_search_path)),
        budget);
    if (trip.fault) return std::unexpected(error_of(*trip.fault, "set up the session"));
    return {};
}

/// libpq was told to look for a server that takes changes, and found only others.
bool found_only_standbys(const Error& error) {
    return error.code == Errc::store_unavailable && (error.message.find("session is read-only") != std::string::npos ||
                                                     error.message.find("hot standby") != std::string::npos);
}

Result<std::unique_ptr<Connection>> made_ready(Result<std::unique_ptr<Connection>> opened, const Settings& settings,
                                               const base::CallBudget& budget) {
    if (!opened) return opened;
    Connection& connection = **opened;
    const std::string& encoding = connection.server_encoding();
    if (encoding != "UTF8" && encoding != "SQL_ASCII")
        return fail(Errc::store_unsafe, fmt::format("the database of {} has the encoding {}, which cannot write every "
                                                    "name; use one with UTF8",
                                                    settings.url, encoding));
    if (connection.is_pooled()) return opened;
    if (auto planned = plan_once(connection, budget); !planned) return std::unexpected(planned.error());
    return opened;
}

}  // namespace

Result<std::unique_ptr<Connection>> connect(const Settings& settings, const base::CallBudget& budget) {
    auto opened = Connection::open(settings, budget);
    if (opened && (*opened)->is_standby()) return std::unexpected(is_standby(settings));
    return made_ready(std::move(opened), settings, budget);
}

Result<std::unique_ptr<Connection>> connect_to_read(const Settings& settings, const base::CallBudget& budget) {
    auto opened = Connection::open(settings, budget);
    if (!opened && found_only_standbys(opened.error())) {
        Settings any = settings;
        any.options["target_session_attrs"] = "any";
        auto standby = Connection::open(any, budget);
        // One that is read-only by its own settings takes no changes either, and is not what is asked for.
        if (standby && (*standby)->is_standby()) opened = std::move(standby);
    }
    return made_ready(std::move(opened), settings, budget);
}

Error is_standby(const Settings& settings) {
    return {Errc::store_unavailable,
            fmt::format("{} is a standby: it cannot grant a lock, and what it shows is old", settings.url)};
}

Error error_of(const Fault& fault, std::string_view doing) {
    const std::string_view code = fault.sqlstate;
    const std::string_view kind = code.substr(0, 2);
    const std::string detail = fault.silent() ? fault.message : fmt::format("{} ({})", fault.message, code);
    if (code == "42501") return {Errc::denied, fmt::format("cannot {}: {}", doing, detail)};
    // Rows that break the schema's own rules, a table that is missing or has other columns, damaged pages.
    if (kind == "23" || kind == "42" || kind == "3F" || kind == "XX")
        return {Errc::record_corrupt,
                fmt::format("cannot {}: {}; the store stays blocked until it is repaired", doing, detail)};
    if (code == "55P03" || code == "57014")
        return {Errc::store_unavailable,
                fmt::format("cannot {} in time: somebody else holds its row; nothing was changed", doing)};
    return {Errc::store_unavailable,
            fmt::format("cannot {}: {}{}; nothing was changed", doing, condition_of(fault), detail)};
}

}  // namespace holdfast::stores::postgres
