#include "guards/sql/migrate/ledger.hpp"

#include "holdfast/lease.hpp"
#include "values/hex.hpp"
#include "values/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace holdfast::guards::migrate {
namespace {

constexpr std::string_view ledger_table = "holdfast_migrations";
constexpr std::string_view identity_table = "holdfast_identity";

/// A key in MySQL needs a length, and must not take `A` for `a`.
std::string_view key_type(SqlDialect dialect) {
    return dialect == SqlDialect::mysql ? "VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin" : "TEXT";
}

std::int64_t number_of(const SqlCell& cell) {
    std::int64_t number = 0;
    if (cell) std::from_chars(cell->data(), cell->data() + cell->size(), number);
    return number;
}

Result<LedgerRow> row_of(const std::vector<SqlCell>& cells) {
    LedgerRow row;
    row.version = cells.at(0).value_or("");
    row.name = cells.at(1).value_or("");
    row.checksum = cells.at(2).value_or("");
    const auto status = status_of(cells.at(3).value_or(""));
    if (!status)
        return fail(Errc::format_unsupported,
                    fmt::format("holdfast_migrations says \"{}\" of version {}; was it written by a newer Holdfast?",
                                cells.at(3).value_or(""), row.version));
    row.status = *status;
    row.token = static_cast<std::uint64_t>(number_of(cells.at(4)));
    row.applied_by = cells.at(5).value_or("");
    row.applied_at = cells.at(6).value_or("");
    row.duration_ms = number_of(cells.at(7));
    row.statements_done = number_of(cells.at(8));
    row.before = cells.at(9).value_or("");
    return row;
}

}  // namespace

LedgerTable::LedgerTable(SqlDialect dialect, std::string schema) : dialect_(dialect), schema_(std::move(schema)) {
    switch (dialect_) {
        case SqlDialect::sqlite: prefix_ = "main."; break;
        case SqlDialect::postgres:
        case SqlDialect::mysql: prefix_ = sql::quoted_name(schema_, dialect_) + "."; break;
    }
}

Result<LedgerTable> LedgerTable::of(sql::Session& session, Deadline deadline) {
    if (session.dialect() == SqlDialect::sqlite) return LedgerTable(SqlDialect::sqlite, "");
    const bool postgres = session.dialect() == SqlDialect::postgres;
    const auto found = session.run(
        {.text = postgres ? "SELECT pg_catalog.current_schema()::text" : "SELECT DATABASE()", .values = {}}, deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "ask for the schema"));
    const SqlCell& schema = found->rows.at(0).at(0);
    if (!schema)
        return fail(Errc::config,
                    fmt::format("{}: {}", session.place(),
                                postgres ? "no schema of the search_path exists" : "the URL names no database"));
    return LedgerTable(session.dialect(), *schema);
}

Result<bool> LedgerTable::has_table(sql::Session& session, std::string_view name, Deadline deadline) const {
    const std::string table(name);
    sql::Command command;
    switch (dialect_) {
        case SqlDialect::sqlite:
            command = {.text = "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = $1",
                       .values = {table}};
            break;
        case SqlDialect::postgres:
            command = {
                .text =
                    "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
                    "WHERE n.nspname = $1 AND c.relname = $2",
                .values = {schema_, table}};
            break;
        case SqlDialect::mysql:
            command = {.text = "SELECT 1 FROM information_schema.tables WHERE table_schema = $1 AND table_name = $2",
                       .values = {schema_, table}};
            break;
    }
    const auto found = session.run(command, deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), fmt::format("look for {}", name)));
    return !found->rows.empty();
}

Result<void> LedgerTable::create_table(sql::Session& session, std::string_view name, std::string_view columns,
                                       Deadline deadline) const {
    const auto there = has_table(session, name, deadline);
    if (!there) return std::unexpected(there.error());
    if (*there) return {};
    const std::string text = fmt::format("CREATE TABLE IF NOT EXISTS {}{} ({}){}", prefix_, name, columns,
                                         dialect_ == SqlDialect::mysql ? " ENGINE = InnoDB" : "");
    const auto made = session.run({.text = text, .values = {}}, deadline);
    if (made) return {};
    // PostgreSQL refuses one of two that create it at the same time.
    const auto now = has_table(session, name, deadline);
    if (now && *now) return {};
    return std::unexpected(sql::error_of(made.error(), fmt::format("create {}", name)));
}

Result<void> LedgerTable::create(sql::Session& session, Deadline deadline) const {
    return create_table(
        session, ledger_table,
        fmt::format("version {} NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, status "
                    "TEXT NOT NULL, token BIGINT NOT NULL, applied_by TEXT NOT NULL, applied_at TEXT NOT "
                    "NULL, duration_ms BIGINT NOT NULL, statements_done BIGINT NOT NULL, before_statement "
                    "TEXT NOT NULL",
                    key_type(dialect_)),
        deadline);
}

Result<Ledger> LedgerTable::read(sql::Session& session, Deadline deadline) const {
    const auto there = has_table(session, ledger_table, deadline);
    if (!there) return std::unexpected(there.error());
    Ledger ledger;
    if (!*there) return ledger;
    const auto found =
        session.run({.text = fmt::format("SELECT version, name, checksum, status, token, applied_by, applied_at, "
                                         "duration_ms, statements_done, before_statement FROM {}{}",
                                         prefix_, ledger_table),
                     .values = {}},
                    deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "read holdfast_migrations"));
    for (const auto& cells : found->rows) {
        auto row = row_of(cells);
        if (!row) return std::unexpected(row.error());
        ledger.push_back(*std::move(row));
    }
    std::ranges::sort(ledger, [](const LedgerRow& a, const LedgerRow& b) {
        return std::tuple(a.is_repeatable(), a.number(), a.version) <
               std::tuple(b.is_repeatable(), b.number(), b.version);
    });
    return ledger;
}

sql::Command LedgerTable::put(const LedgerRow& row) const {
    constexpr std::string_view columns =
        "version, name, checksum, status, token, applied_by, applied_at, duration_ms, statements_done, "
        "before_statement";
    constexpr std::string_view changed =
        "name = $2, checksum = $3, status = $4, token = $5, applied_by = $6, applied_at = $7, duration_ms = $8, "
        "statements_done = $9, before_statement = $10";
    const bool mysql = dialect_ == SqlDialect::mysql;
    return {.text = fmt::format("INSERT INTO {}{} ({}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) {} {}", prefix_,
                                ledger_table, columns,
                                mysql ? "ON DUPLICATE KEY UPDATE" : "ON CONFLICT (version) DO UPDATE SET", changed),
            .values = {row.version, row.name, row.checksum, std::string(name_of(row.status)),
                       static_cast<std::int64_t>(row.token), row.applied_by, row.applied_at, row.duration_ms,
                       row.statements_done, row.before}};
}

sql::Command LedgerTable::remove(const std::string& version) const {
    return {.text = fmt::format("DELETE FROM {}{} WHERE version = $1", prefix_, ledger_table), .values = {version}};
}

Result<std::optional<std::string>> LedgerTable::identity(sql::Session& session, Deadline deadline) const {
    const auto there = has_table(session, identity_table, deadline);
    if (!there) return std::unexpected(there.error());
    if (!*there) return std::nullopt;
    const auto found = session.run(
        {.text = fmt::format("SELECT identity FROM {}{} WHERE id = 1", prefix_, identity_table), .values = {}},
        deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "read holdfast_identity"));
    if (found->rows.empty()) return std::nullopt;
    return found->rows[0].at(0);
}

Result<std::string> LedgerTable::make_identity(sql::Session& session, Deadline deadline) const {
    const auto made = create_table(session, identity_table,
                                   "id INTEGER NOT NULL PRIMARY KEY, identity VARCHAR(64) NOT NULL", deadline);
    if (!made) return std::unexpected(made.error());
    const LockId random = LockId::random();
    const std::string text = to_hex(std::span(random.bytes()).first(8));
    const bool mysql = dialect_ == SqlDialect::mysql;
    // The first one stays.
    const auto added =
        session.run({.text = fmt::format("INSERT {}INTO {}{} (id, identity) VALUES (1, $1){}", mysql ? "IGNORE " : "",
                                         prefix_, identity_table, mysql ? "" : " ON CONFLICT DO NOTHING"),
                     .values = {text}},
                    deadline);
    if (!added) return std::unexpected(sql::error_of(added.error(), "name the database"));
    auto identity = this->identity(session, deadline);
    if (!identity) return std::unexpected(identity.error());
    if (!*identity) return fail(Errc::record_corrupt, "holdfast_identity is empty");
    return **identity;
}

std::string lock_name_of(std::string_view identity, std::string_view schema) {
    const auto is_plain = [](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
               (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' || letter == '.';
    };
    std::string name = fmt::format("migrate/{}", identity);
    if (schema.empty()) return name;
    name += '/';
    const std::size_t begin = name.size();
    const bool is_step = schema == "." || schema == "..";
    for (const char letter : schema)
        name += is_plain(letter) && !is_step ? std::string(1, letter)
                                             : fmt::format("%{:02x}", static_cast<unsigned char>(letter));
    // A database of MySQL may have a name of 64 letters, each of three bytes.
    if (name.size() > LockName::max_bytes)
        name.replace(begin, std::string::npos,
                     "%" + to_hex(sha256({reinterpret_cast<const std::uint8_t*>(schema.data()), schema.size()})));
    return name;
}

}  // namespace holdfast::guards::migrate
