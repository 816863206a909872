#include "guards/sql/migrate/database.hpp"

#include "base/url.hpp"
#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace holdfast::guards::migrate {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view beside = "-locks";

/// As a part of a URL.
std::string percent_encoded(std::string_view text) {
    std::string encoded;
    for (const char letter : text) {
        const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                           (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' || letter == '/' ||
                           letter == '.';
        encoded += plain ? std::string(1, letter) : fmt::format("%{:02x}", static_cast<unsigned char>(letter));
    }
    return encoded;
}

/// The user `holdfast` has "$user" in its search_path, and the lock store has made a schema of that name: nothing of an
/// application belongs there. The search_path without it, where it comes first.
constexpr auto path_without_locks = R"(
SELECT (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(s), ',')
    FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) AS s WHERE s <> 'holdfast')
WHERE pg_catalog.current_schema() = 'holdfast' AND EXISTS
    (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
     WHERE n.nspname = 'holdfast' AND c.relname = 'locks') AND
    pg_catalog.array_length(pg_catalog.current_schemas(false), 1) > 1)";
constexpr auto set_path = "SELECT pg_catalog.set_config('search_path', $1, false)";

constexpr auto begin_in_schema = "SELECT pg_catalog.set_config('search_path', pg_catalog.quote_ident($1), false)";

constexpr auto postgres_schemas = R"(
SELECT nspname::text FROM pg_catalog.pg_namespace AS n
WHERE nspname LIKE $1 AND nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema' AND
    NOT (nspname = 'holdfast' AND EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.relnamespace = n.oid AND c.relname = 'locks'))
ORDER BY nspname)";
constexpr auto mysql_schemas = R"(
SELECT schema_name FROM information_schema.schemata
WHERE schema_name LIKE $1 AND schema_name NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')
ORDER BY schema_name)";

Result<void> begin_in(sql::Session& session, const std::string& schema, Deadline deadline) {
    // A transaction pooler would give the setting to somebody else, and us a session without it.
    if (session.server().pooled)
        return fail(Errc::store_unsafe, session.place() +
                                            " is behind a pooler, where a session cannot be told which "
                                            "schema is its own; connect to the server itself");
    const auto set = session.run({.text = begin_in_schema, .values = {schema}}, deadline);
    if (!set) return std::unexpected(sql::error_of(set.error(), "choose the schema"));
    const auto begun = session.run({.text = "SELECT pg_catalog.current_schema()::text", .values = {}}, deadline);
    if (!begun) return std::unexpected(sql::error_of(begun.error(), "ask for the schema"));
    if (begun->rows.at(0).at(0) == schema) return {};
    return fail(Errc::config,
                session.place() + " has no schema " + printable(schema) + ", or this user may not use it");
}

Result<void> leave_schema_of_locks(sql::Session& session, Deadline deadline) {
    const auto path = session.run({.text = path_without_locks, .values = {}}, deadline);
    if (!path) return std::unexpected(sql::error_of(path.error(), "choose the schema"));
    if (path->rows.empty()) return {};
    if (session.server().pooled)
        return fail(Errc::store_unsafe,
                    fmt::format("{} is behind a pooler, and its user finds the schema of the locks first; give it a "
                                "search_path of its own: ALTER ROLE … SET search_path = …",
                                session.place()));
    const auto set = session.run({.text = set_path, .values = {path->rows[0].at(0).value_or("")}}, deadline);
    if (!set) return std::unexpected(sql::error_of(set.error(), "choose the schema"));
    return {};
}

Result<std::unique_ptr<sql::Session>> open(const Database& database, sql::IfAbsent if_absent, const Clock& clock,
                                           Deadline deadline) {
    auto session = sql::open_session(database.url, if_absent, clock, deadline);
    if (!session || (*session)->dialect() != SqlDialect::postgres) return session;
    if (!database.schema.empty()) {
        if (auto begun = begin_in(**session, database.schema, deadline); !begun) return std::unexpected(begun.error());
        return session;
    }
    if (auto left = leave_schema_of_locks(**session, deadline); !left) return std::unexpected(left.error());
    return session;
}

}  // namespace

std::string shown(const Database& database) {
    const auto parsed = base::Url::parse(database.url);
    const std::string place = parsed ? parsed->redacted() : "the database";
    return database.schema.empty() ? place : place + " " + database.schema;
}

Result<Database> in_schema(std::string url, std::string schema) {
    if (schema.empty() || dialect_of(url) == SqlDialect::postgres) return Database{std::move(url), std::move(schema)};
    if (dialect_of(url) == SqlDialect::sqlite) return fail(Errc::usage, "a SQLite file has no schemas");
    const auto question = std::min(url.find('?'), url.size());
    const auto authority = url.find("://");
    if (authority > question) return fail(Errc::usage, "a MySQL URL is written mysql://user@host:port/database");
    const auto slash = std::min(url.find('/', authority + 3), question);
    return Database{url.substr(0, slash) + '/' + percent_encoded(schema) + url.substr(question)};
}

Result<std::vector<std::string>> schemas_like(const std::string& url, const std::string& pattern, const Clock& clock,
                                              Deadline deadline) {
    if (dialect_of(url) == SqlDialect::sqlite) return fail(Errc::usage, "a SQLite file has no schemas");
    const auto session = sql::open_session(url, sql::IfAbsent::refuse, clock, deadline);
    if (!session) return std::unexpected(session.error());
    const bool postgres = (*session)->dialect() == SqlDialect::postgres;
    const auto found =
        (*session)->run({.text = postgres ? postgres_schemas : mysql_schemas, .values = {pattern}}, deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "look for schemas"));
    std::vector<std::string> names;
    for (const auto& row : found->rows) names.push_back(row.at(0).value_or(""));
    return names;
}

Result<std::string> lock_store_of(const std::string& url) {
    if (dialect_of(url) != SqlDialect::sqlite) return url;
    // The path as it is written, parameters left out.
    return url.substr(0, url.find('?')) + std::string(beside);
}

Result<Look> look_at(const Database& database, const Clock& clock, Deadline deadline) {
    auto session = open(database, sql::IfAbsent::refuse, clock, deadline);
    if (!session) return std::unexpected(session.error());
    auto table = LedgerTable::of(**session, deadline);
    if (!table) return std::unexpected(table.error());
    auto ledger = table->read(**session, deadline);
    if (!ledger) return std::unexpected(ledger.error());
    return Look{*std::move(session), *std::move(table), *std::move(ledger)};
}

Result<Ledger> ledger_of(const Database& database, const Clock& clock, Deadline deadline) {
    if (dialect_of(database.url) == SqlDialect::sqlite) {
        const auto parsed = base::Url::parse(database.url);
        std::error_code failed;
        if (parsed && !fs::exists(parsed->place, failed)) return Ledger{};
    }
    auto look = look_at(database, clock, deadline);
    if (!look) return std::unexpected(look.error());
    return std::move(look->ledger);
}

Result<std::unique_ptr<sql::Session>> connect(const Database& database, const Clock& clock, Deadline deadline) {
    return open(database, sql::IfAbsent::create, clock, deadline);
}

Result<std::unique_ptr<sql::Session>> connect_if_there(const Database& database, const Clock& clock,
                                                       Deadline deadline) {
    return open(database, sql::IfAbsent::refuse, clock, deadline);
}

Result<std::string> default_lock_of(const Database& database, const Clock& clock, Deadline deadline) {
    auto session = connect(database, clock, deadline);
    if (!session) return std::unexpected(session.error());
    const auto table = LedgerTable::of(**session, deadline);
    if (!table) return std::unexpected(table.error());
    const auto identity = table->make_identity(**session, deadline);
    if (!identity) return std::unexpected(identity.error());
    return lock_name_of(*identity, table->schema());
}

}  // namespace holdfast::guards::migrate
