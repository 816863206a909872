#include "guards/sql/migrate/database.hpp"

#include "base/url.hpp"

#include <filesystem>

namespace holdfast::guards::migrate {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view beside = "-locks";

/// The user `holdfast` has "$user" in its search_path, and the lock store has made a schema of that name: nothing of an
/// application belongs there.
constexpr auto leave_schema_of_locks = R"(
SELECT pg_catalog.set_config('search_path', (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(s), ',')
    FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) AS s WHERE s <> 'holdfast'), false)
WHERE pg_catalog.current_schema() = 'holdfast' AND pg_catalog.to_regclass('holdfast.locks') IS NOT NULL AND
    pg_catalog.array_length(pg_catalog.current_schemas(false), 1) > 1)";

Result<std::unique_ptr<sql::Session>> open(const std::string& url, sql::IfAbsent if_absent, const Clock& clock,
                                           Deadline deadline) {
    auto session = sql::open_session(url, if_absent, clock, deadline);
    if (!session || (*session)->dialect() != SqlDialect::postgres) return session;
    const auto left = (*session)->run({.text = leave_schema_of_locks, .values = {}}, deadline);
    if (!left) return std::unexpected(sql::error_of(left.error(), "choose the schema"));
    return session;
}

}  // namespace

std::string shown(std::string_view url) {
    const auto parsed = base::Url::parse(url);
    return parsed ? parsed->redacted() : "the database";
}

Result<std::string> lock_store_of(const std::string& url) {
    if (dialect_of(url) != SqlDialect::sqlite) return url;
    // The path as it is written, parameters left out.
    return url.substr(0, url.find('?')) + std::string(beside);
}

Result<Look> look_at(const std::string& url, const Clock& clock, Deadline deadline) {
    auto session = open(url, sql::IfAbsent::refuse, clock, deadline);
    if (!session) return std::unexpected(session.error());
    auto table = LedgerTable::of(**session, deadline);
    if (!table) return std::unexpected(table.error());
    auto ledger = table->read(**session, deadline);
    if (!ledger) return std::unexpected(ledger.error());
    return Look{*std::move(session), *std::move(table), *std::move(ledger)};
}

Result<Ledger> ledger_of(const std::string& url, const Clock& clock, Deadline deadline) {
    if (dialect_of(url) == SqlDialect::sqlite) {
        const auto parsed = base::Url::parse(url);
        std::error_code failed;
        if (parsed && !fs::exists(parsed->place, failed)) return Ledger{};
    }
    auto look = look_at(url, clock, deadline);
    if (!look) return std::unexpected(look.error());
    return std::move(look->ledger);
}

Result<std::unique_ptr<sql::Session>> connect(const std::string& url, const Clock& clock, Deadline deadline) {
    return open(url, sql::IfAbsent::create, clock, deadline);
}

Result<std::string> default_lock_of(const std::string& url, const Clock& clock, Deadline deadline) {
    auto session = connect(url, clock, deadline);
    if (!session) return std::unexpected(session.error());
    const auto table = LedgerTable::of(**session, deadline);
    if (!table) return std::unexpected(table.error());
    const auto identity = table->make_identity(**session, deadline);
    if (!identity) return std::unexpected(identity.error());
    return lock_name_of(*identity, table->schema());
}

}  // namespace holdfast::guards::migrate
