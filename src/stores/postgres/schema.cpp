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

/// An upgrade waits no longer than this for readers of the store, since all others wait for it meanwhile. Our own
/// transactions do not take as long.
constexpr std::chrono::milliseconds longest_upgrade_wait = longest_pause + std::chrono::seconds{1};

/// The statements of schema.sql. An empty line ends one there, and lines that begin with -- before it explain it.
std::vector<std::string> texts_for(const Settings& settings) {
    const std::string text = replaced(schema_text, "\"holdfast\"", settings.quoted_schema());
    std::vector<std::string> statements;
    for (std::string_view rest = text; !rest.empty();) {
        std::string_view paragraph = rest.substr(0, rest.find("\n\n"));
        rest.remove_prefix(std::min(paragraph.size() + 2, rest.size()));
        while (paragraph.starts_with("--"))
            paragraph.remove_prefix(std::min(paragraph.find('\n'), paragraph.size() - 1) + 1);
        if (!paragraph.empty()) statements.emplace_back(paragraph);
    }
    return statements;
}

/// The key of the advisory lock under which one client at a time creates the store. A hash, so that no other program
/// uses it by accident.
std::int64_t creation_key(const Settings& settings) {
    const std::string what = "holdfast creates the schema " + settings.schema;
    const Digest digest = sha256({reinterpret_cast<const std::uint8_t*>(what.data()), what.size()});
    std::uint64_t key = 0;
    for (std::size_t i = 0; i < sizeof key; ++i) key = key << 8 | digest[i];
    return static_cast<std::int64_t>(key);
}

/// Begins a transaction during which no other client can create or upgrade this store.
std::vector<Statement> begin_alone(const Settings& settings, const base::CallBudget& budget) {
    const std::string time = std::to_string(std::max<std::int64_t>(budget.left().count() * 9 / 10, 1));
    std::vector<Statement> trip{Statement("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")};
    trip.push_back(Statement(fmt::format("SELECT pg_catalog.set_config('search_path', '{}', true)", safe_search_path)));
    trip.push_back(Statement("SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') "
                             "WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true), "
                             "set_config('statement_timeout', $1, true)")
                       .bind(time));
    trip.push_back(Statement("SELECT pg_advisory_xact_lock($1)").bind(creation_key(settings)));
    return trip;
}

Error tables_of_another(const Settings& settings) {
    return {Errc::format_unsupported, fmt::format("the schema {} holds tables of another program", settings.schema)};
}

/// Whether the tables are there or not after this, no lock was touched.
Error not_created(const Fault& fault, const Settings& settings) {
    Error error = error_of(fault, fmt::format("create the schema {}", settings.schema));
    if (error.code == Errc::denied)
        error.message += "; let its owner run what `holdfast init --print` prints";
    else if (fault.sqlstate == "42P07" || fault.sqlstate == "42723")
        error = tables_of_another(settings);
    else
        error.code = Errc::store_unavailable;
    return error;
}

/// The same for an upgrade.
Error not_upgraded(const Fault& fault, const Settings& settings) {
    Error error = error_of(fault, fmt::format("upgrade the schema {} to format {}", settings.schema, our_format));
    if (error.code == Errc::denied)
        error.message += "; let its owner run `holdfast init` of this version first; nothing was changed";
    else if (fault.sqlstate == "55P03" || fault.sqlstate == "57014")
        error.message = fmt::format(
            "the schema {} could not be upgraded to format {}, because somebody kept reading its tables (a dump?); "
            "nothing was changed, try again",
            settings.schema, our_format);
    else if (has_no_mark(fault) || is_missing(fault))
        error = tables_of_another(settings);
    else
        error.code = Errc::store_unavailable;
    return error;
}

/// Upgrades `format_without_mark` to our format. Every transaction, of any version, begins with reading `meta`: so the
/// first of these statements waits for transactions that have seen the old format, and later ones see the new format.
std::vector<Statement> upgrading_statements(const Settings& settings) {
    const std::string s = settings.quoted_schema();
    std::vector<Statement> statements;
    statements.push_back(
        Statement("SELECT set_config('lock_timeout', $1, true)").bind(std::to_string(longest_upgrade_wait.count())));
    statements.emplace_back(
        fmt::format("ALTER TABLE {}.meta ADD COLUMN IF NOT EXISTS used boolean NOT NULL DEFAULT false", s));
    for (const std::string& text : texts_for(settings))
        if (text.find("BEFORE TRUNCATE") != std::string::npos) statements.emplace_back(text);
    statements.emplace_back(
        fmt::format("UPDATE {0}.meta SET format = {1}, used = EXISTS (SELECT FROM {0}.locks WHERE seq > 0) "
                    "OR EXISTS (SELECT FROM {0}.audit) WHERE id = 1",
                    s, our_format));
    statements.emplace_back("COMMIT");
    return statements;
}

/// The same for `format_without_new_events`. Waits for no other transaction, since what an older program still writes
/// is valid in both formats.
std::vector<Statement> renumbering_statements(const Settings& settings) {
    return {Statement(fmt::format("UPDATE {}.meta SET format = {} WHERE id = 1", settings.quoted_schema(), our_format)),
            Statement("COMMIT")};
}

/// Runs `make` in the transaction that is open.
std::optional<Fault> finish(Connection& connection, const std::vector<Statement>& make,
                            const base::CallBudget& budget) {
    Trip made = connection.run(make, budget);
    if (made.fault) connection.send_only(Statement("ROLLBACK"));
    return std::move(made.fault);
}

}  // namespace

Result<Identity> read_identity(const Rows& rows) {
    if (rows.count() != 1)
        return fail(Errc::record_corrupt,
                    "the store's identity cannot be read; the store stays blocked until it is repaired");
    const std::int64_t format = rows.number(0, 0);
    if (format < format_without_mark || format > our_format)
        return fail(
            Errc::format_unsupported,
            fmt::format("the store has format {}, and this Holdfast knows {}; use a newer one", format, our_format));
    return Identity{StoreId(rows.lock_id(0, 1).value_or(LockId{}).bytes()), format,
                    format != format_without_mark && rows.flag(0, 2)};
}

bool is_missing(const Fault& fault) { return fault.sqlstate == "42P01" || fault.sqlstate == "3F000"; }

bool has_no_mark(const Fault& fault) { return fault.sqlstate == "42703"; }

Result<void> create_store(Connection& connection, const Settings& settings, const base::CallBudget& budget) {
    std::vector<Statement> look = begin_alone(settings, budget);
    // A statement of its own, so that it sees the store if another client has just created it.
    look.push_back(Statement("SELECT to_regclass($1) IS NOT NULL").bind(settings.quoted_schema() + ".meta"));
    const Trip looked = connection.run(look, budget);
    const Statement rollback("ROLLBACK");
    if (looked.fault || looked.answers.back().flag(0, 0)) {
        connection.send_only(rollback);
        if (looked.fault) return std::unexpected(not_created(*looked.fault, settings));
        return {};
    }
    std::vector<Statement> make;
    for (const std::string& text : texts_for(settings)) make.emplace_back(text);
    make.emplace_back("COMMIT");
    if (const auto fault = finish(connection, make, budget)) return std::unexpected(not_created(*fault, settings));
    return {};
}

Result<void> upgrade_store(Connection& connection, const Settings& settings, const base::CallBudget& budget) {
    std::vector<Statement> look = begin_alone(settings, budget);
    look.emplace_back(fmt::format("SELECT format FROM {}.meta WHERE id = 1", settings.quoted_schema()));
    const Trip looked = connection.run(look, budget);
    const bool is_there = !looked.fault && looked.answers.back().count() == 1;
    const std::int64_t format = is_there ? looked.answers.back().number(0, 0) : our_format;
    if (format >= our_format) {
        connection.send_only(Statement("ROLLBACK"));
        if (looked.fault) return std::unexpected(not_upgraded(*looked.fault, settings));
        return {};
    }
    const bool adds_mark = format == format_without_mark;
    if (const auto fault =
            finish(connection, adds_mark ? upgrading_statements(settings) : renumbering_statements(settings), budget))
        return std::unexpected(not_upgraded(*fault, settings));
    return {};
}

}  // namespace holdfast::stores::postgres
