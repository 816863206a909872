#include "guards/sql/data/statements.hpp"

#include "sql/session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace holdfast::guards::data {
namespace {

constexpr std::string_view row_column = "holdfast_row";

/// Whether a value differs, as it is stored: `1.0` from `1.00`, `a` from `A`, NULL from everything else. The
/// comparison of the type itself would leave rows as they are that the file has otherwise.
std::string differs(SqlDialect dialect, const std::string& column) {
    switch (dialect) {
        case SqlDialect::sqlite: return fmt::format("t.{0} COLLATE BINARY IS NOT s.{0}", column);
        case SqlDialect::postgres:
            return fmt::format("(t.{0})::text COLLATE \"C\" IS DISTINCT FROM (s.{0})::text COLLATE \"C\"", column);
        case SqlDialect::mysql: break;
    }
    return fmt::format("NOT (CAST(t.{0} AS BINARY) <=> CAST(s.{0} AS BINARY))", column);
}

template <class Write>
std::string joined(const std::vector<std::string>& names, std::string_view between, Write write) {
    std::vector<std::string> parts;
    for (const std::string& name : names) parts.push_back(write(name));
    return fmt::to_string(fmt::join(parts, between));
}

std::string stage_name(SqlDialect dialect, std::size_t number) {
    std::string name = fmt::format("holdfast_data_{}", number);
    switch (dialect) {
        case SqlDialect::sqlite: return "temp." + name;
        case SqlDialect::postgres: return "pg_temp." + name;
        case SqlDialect::mysql: break;
    }
    return name;
}

/// With the types and collations of the table, and without its rules.
void write_stage(Statements& all, SqlDialect dialect, std::size_t number, const std::vector<std::string>& key) {
    const std::string columns = fmt::to_string(fmt::join(all.columns, ", "));
    const std::string keys = fmt::to_string(fmt::join(key, ", "));
    switch (dialect) {
        case SqlDialect::sqlite:
            all.make_stage = fmt::format(
                "CREATE TEMP TABLE holdfast_data_{} AS SELECT {}, CAST(0 AS INTEGER) AS {} FROM "
                "{} WHERE 0",
                number, columns, row_column, all.table);
            all.drop_stage = fmt::format("DROP TABLE IF EXISTS {}", all.stage);
            all.index_stage =
                fmt::format("CREATE INDEX temp.holdfast_key_{0} ON holdfast_data_{0} ({1})", number, keys);
            return;
        case SqlDialect::postgres:
            all.make_stage = fmt::format(
                "CREATE TEMP TABLE holdfast_data_{} ON COMMIT DROP AS SELECT {}, 0::bigint AS {} FROM {} WITH NO DATA",
                number, columns, row_column, all.table);
            all.drop_stage = fmt::format("DROP TABLE IF EXISTS {}", all.stage);
            all.index_stage = fmt::format("ANALYZE {}", all.stage);
            return;
        case SqlDialect::mysql: break;
    }
    all.make_stage =
        fmt::format("CREATE TEMPORARY TABLE {} ({} BIGINT NOT NULL DEFAULT 0) AS SELECT {} FROM {} LIMIT 0", all.stage,
                    row_column, columns, all.table);
    all.drop_stage = fmt::format("DROP TEMPORARY TABLE IF EXISTS {}", all.stage);
    all.index_stage = fmt::format("CREATE INDEX holdfast_key ON {} ({})", all.stage, keys);
}

void write_update(Statements& all, SqlDialect dialect, const std::vector<std::string>& rest, const std::string& match) {
    if (rest.empty()) return;
    const std::string changed =
        joined(rest, " OR ", [&](const std::string& column) { return differs(dialect, column); });
    const bool mysql = dialect == SqlDialect::mysql;
    const std::string set = joined(rest, ", ", [&](const std::string& column) {
        return fmt::format("{0}{1} = s.{1}", mysql ? "t." : "", column);
    });
    all.update = mysql ? fmt::format("UPDATE {} AS t JOIN {} AS s ON {} SET {} WHERE {}", all.table, all.stage, match,
                                     set, changed)
                       : fmt::format("UPDATE {} AS t SET {} FROM {} AS s WHERE {} AND ({})", all.table, set, all.stage,
                                     match, changed);
    all.count_update =
        fmt::format("SELECT COUNT(*) FROM {} AS t JOIN {} AS s ON {} WHERE {}", all.table, all.stage, match, changed);
}

}  // namespace

Statements statements_for(SqlDialect dialect, const TableInfo& table, const std::vector<std::string>& columns,
                          const std::vector<std::string>& key, std::size_t number) {
    const auto quoted = [&](const std::string& name) { return sql::quoted_name(name, dialect); };
    Statements all;
    all.table = table.quoted;
    for (const std::string& column : columns) all.columns.push_back(quoted(column));
    all.clear = fmt::format("DELETE FROM {}", all.table);
    all.count_all = fmt::format("SELECT COUNT(*) FROM {}", all.table);
    if (key.empty() || columns.empty()) return all;

    all.stage = stage_name(dialect, number);
    all.stage_columns = all.columns;
    all.stage_columns.emplace_back(row_column);
    std::vector<std::string> keys;
    std::vector<std::string> rest;
    for (const std::string& name : key) keys.push_back(quoted(name));
    for (const std::string& name : columns)
        if (std::ranges::find(key, name) == key.end()) rest.push_back(quoted(name));
    write_stage(all, dialect, number, keys);
    const std::string match =
        joined(keys, " AND ", [](const std::string& name) { return fmt::format("t.{0} = s.{0}", name); });
    const std::string list = fmt::to_string(fmt::join(all.columns, ", "));
    const std::string taken = joined(all.columns, ", ", [](const std::string& name) { return "s." + name; });
    const std::string missing_in_table =
        fmt::format("FROM {} AS s WHERE NOT EXISTS (SELECT 1 FROM {} AS t WHERE {})", all.stage, all.table, match);
    const std::string missing_in_stage =
        fmt::format("FROM {} AS t WHERE NOT EXISTS (SELECT 1 FROM {} AS s WHERE {})", all.table, all.stage, match);
    all.duplicate = fmt::format("SELECT MIN({0}), MAX({0}) FROM {1} GROUP BY {2} HAVING COUNT(*) > 1 LIMIT 1",
                                row_column, all.stage, fmt::join(keys, ", "));
    all.insert = fmt::format("INSERT INTO {} ({}){} SELECT {} {} ORDER BY s.{}", all.table, list,
                             dialect == SqlDialect::postgres ? " OVERRIDING SYSTEM VALUE" : "", taken, missing_in_table,
                             row_column);
    all.count_insert = "SELECT COUNT(*) " + missing_in_table;
    all.remove = fmt::format("DELETE {}{}", dialect == SqlDialect::mysql ? "t " : "", missing_in_stage);
    all.count_remove = "SELECT COUNT(*) " + missing_in_stage;
    write_update(all, dialect, rest, match);
    return all;
}

std::vector<std::string> session_settings(SqlDialect dialect) {
    switch (dialect) {
        // Off unless a connection asks for it.
        case SqlDialect::sqlite: return {"PRAGMA foreign_keys = ON"};
        case SqlDialect::postgres: return {};
        case SqlDialect::mysql: break;
    }
    return {
        "SET SESSION sql_mode = CONCAT_WS(',', NULLIF(@@SESSION.sql_mode, ''), 'STRICT_ALL_TABLES', "
        "'NO_AUTO_VALUE_ON_ZERO')",
        "SET SESSION foreign_key_checks = 1, unique_checks = 1",
        "SET SESSION lock_wait_timeout = 3, innodb_lock_wait_timeout = 3"};
}

std::vector<std::string> transaction_settings(SqlDialect dialect) {
    switch (dialect) {
        case SqlDialect::sqlite: return {"PRAGMA defer_foreign_keys = ON"};
        // Rows that a policy hides would be taken for missing: then the statement is refused.
        case SqlDialect::postgres:
            return {"SET LOCAL lock_timeout = 3000", "SET LOCAL row_security = off", "SET CONSTRAINTS ALL DEFERRED"};
        case SqlDialect::mysql: break;
    }
    return {};
}

}  // namespace holdfast::guards::data
