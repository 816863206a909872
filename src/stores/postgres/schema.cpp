#include "stores/postgres/schema.hpp"

#include "stores/postgres/postgres_store.hpp"
#include "stores/postgres/schema_text.hpp"
#include "values/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::stores {

std::string_view postgres_schema() { return postgres::schema_text; }

}  // namespace holdfast::stores

namespace holdfast::stores::postgres {
namespace {

std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
    std::string out(text);
    for (std::size_t at = 0; (at = out.find(what, at)) != std::string::npos; at += with.size())
        out.replace(at, what.size(), with);
    return out;
}

/// The statements of schema.sql. An empty line ends one there, and lines that begin with -- before it explain it.
std::vector<Statement> statements_for(const Settings& settings) {
    const std::string text = replaced(schema_text, "\"holdfast\"", settings.quoted_schema());
    std::vector<Statement> statements;
    for (std::string_view rest = text; !rest.empty();) {
        std::string_view paragraph = rest.substr(0, rest.find("\n\n"));
        rest.remove_prefix(std::min(paragraph.size() + 2, rest.size()));
        while (paragraph.starts_with("--"))
            paragraph.remove_prefix(std::min(paragraph.find('\n'), paragraph.size() - 1) + 1);
        if (!paragraph.empty()) statements.emplace_back(paragraph);
    }
    return statements;
}

/// Only one creates at a time. Chosen so that nobody else's advisory lock is the same by accident.
std::int64_t creation_key(const Settings& settings) {
    const std::string what = "holdfast creates the schema " + settings.schema;
    const Digest digest = sha256({reinterpret_cast<const std::uint8_t*>(what.data()), what.size()});
    std::uint64_t key = 0;
    for (std::size_t i = 0; i < sizeof key; ++i) key = key << 8 | digest[i];
    return static_cast<std::int64_t>(key);
}

/// Whether the tables are there or not after this, no lock was touched.
Error not_created(const Fault& fault, const Settings& settings) {
    Error error = error_of(fault, fmt::format("create the schema {}", settings.schema));
    if (error.code == Errc::denied)
        error.message += "; let its owner run what `holdfast init --print` prints";
    else if (fault.sqlstate == "42P07" || fault.sqlstate == "42723")
        error = {Errc::format_unsupported,
                 fmt::format("the schema {} holds tables of another program", settings.schema)};
    else
        error.code = Errc::store_unavailable;
    return error;
}

}  // namespace

Result<StoreId> read_identity(const Rows& rows) {
    if (rows.count() != 1)
        return fail(Errc::record_corrupt,
                    "the store's identity cannot be read; the store stays blocked until it is repaired");
    if (const std::int64_t format = rows.number(0, 0); format != our_format)
        return fail(
            Errc::format_unsupported,
            fmt::format("the store has format {}, and this Holdfast knows {}; use a newer one", format, our_format));
    return StoreId(rows.lock_id(0, 1).value_or(LockId{}).bytes());
}

bool is_missing(const Fault& fault) { return fault.sqlstate == "42P01" || fault.sqlstate == "3F000"; }

Result<void> create_store(Connection& connection, const Settings& settings, const Budget& budget) {
    const std::string time = std::to_string(std::max<std::int64_t>(budget.left().count() * 9 / 10, 1));
    std::vector<Statement> look{Statement("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")};
    look.push_back(Statement("SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') "
                             "WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), "
                             "set_config('statement_timeout', $1, true)")
                       .bind(time));
    look.push_back(Statement("SELECT pg_advisory_xact_lock($1)").bind(creation_key(settings)));
    // A statement of its own, which sees what the one who created it before us has committed.
    look.push_back(Statement("SELECT to_regclass($1) IS NOT NULL").bind(settings.quoted_schema() + ".meta"));
    const Trip looked = connection.run(look, budget);
    const Statement rollback("ROLLBACK");
    if (looked.fault || looked.answers.back().flag(0, 0)) {
        connection.send_only(rollback);
        if (looked.fault) return std::unexpected(not_created(*looked.fault, settings));
        return {};
    }
    std::vector<Statement> make = statements_for(settings);
    make.emplace_back("COMMIT");
    const Trip made = connection.run(make, budget);
    if (!made.fault) return {};
    connection.send_only(rollback);
    return std::unexpected(not_created(*made.fault, settings));
}

}  // namespace holdfast::stores::postgres
