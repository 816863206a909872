#include "guards/sql/data/catalog.hpp"

#include "values/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

namespace holdfast::guards::data {
namespace {

constexpr std::string_view our_prefix = "holdfast_";

Result<SqlAnswer> ask(sql::Session& session, std::string text, std::vector<SqlValue> values, Deadline deadline) {
    auto answer = session.run({.text = std::move(text), .values = std::move(values)}, deadline);
    if (!answer) return std::unexpected(sql::error_of(answer.error(), "read what the tables are"));
    return *std::move(answer);
}

bool same_without_case(std::string_view a, std::string_view b) {
    const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::ranges::equal(a, b, {}, small, small);
}

/// The statements of one database, each with the same columns in its answer.
struct Questions {
    /// Bound to schema and table. The schema, the table, and `table`, or what it is instead.
    std::string_view table;
    /// Bound to schema and table. Columns that can be written, in their order.
    std::string_view columns;
    /// Bound to schema and table. The name of a unique key, whether it is the primary one, one of its columns or NULL
    /// for an expression; in the order of keys and columns.
    std::string_view keys;
    /// All foreign keys: from schema and table, to schema and table, whether rows follow when a row is deleted, whether
    /// it can be checked at the end.
    std::string_view references;
};

constexpr Questions of_sqlite{
    .table =
        "SELECT '', name, CASE WHEN type = 'table' AND sql LIKE 'CREATE VIRTUAL%' THEN 'a virtual table' "
        "WHEN type = 'table' THEN 'table' ELSE 'a view' END "
        "FROM main.sqlite_schema WHERE type IN ('table', 'view') AND name = $2 COLLATE NOCASE",
    .columns = "SELECT name FROM pragma_table_xinfo($2, 'main') WHERE hidden = 0 ORDER BY cid",
    .keys =
        "SELECT k, is_primary, c FROM (SELECT '' AS k, 1 AS is_primary, name AS c, pk AS at "
        "FROM pragma_table_info($2, 'main') WHERE pk > 0 UNION ALL "
        "SELECT l.name, 0, i.name, i.seqno FROM pragma_index_list($2, 'main') AS l, "
        "pragma_index_info(l.name, 'main') AS i WHERE l.\"unique\" = 1 AND l.partial = 0 AND l.origin <> 'pk') "
        "ORDER BY is_primary DESC, k, at",
    .references =
        "SELECT '', m.name, '', f.\"table\", f.on_delete NOT IN ('NO ACTION', 'RESTRICT'), 1 "
        "FROM main.sqlite_schema AS m, pragma_foreign_key_list(m.name, 'main') AS f WHERE m.type = 'table'"};

constexpr Questions of_postgres{
    .table =
        "SELECT n.nspname::text, c.relname::text, CASE WHEN c.relkind IN ('r', 'p') THEN 'table' "
        "WHEN c.relkind = 'f' THEN 'a foreign table' ELSE 'no table' END "
        "FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
        "WHERE c.oid = CASE WHEN $1 = '' THEN pg_catalog.to_regclass(pg_catalog.quote_ident($2)) "
        "ELSE pg_catalog.to_regclass(pg_catalog.quote_ident($1) || '.' || pg_catalog.quote_ident($2)) END",
    .columns =
        "SELECT a.attname::text FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c ON c.oid = "
        "a.attrelid JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND "
        "c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum",
    .keys =
        "SELECT i.indexrelid::text, i.indisprimary, a.attname::text FROM pg_catalog.pg_index AS i "
        "JOIN pg_catalog.pg_class AS c ON c.oid = i.indrelid "
        "JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace "
        "CROSS JOIN LATERAL pg_catalog.unnest(i.indkey) WITH ORDINALITY AS k (attnum, at) "
        "LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum "
        "WHERE n.nspname = $1 AND c.relname = $2 AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND "
        "k.at <= i.indnkeyatts ORDER BY i.indisprimary DESC, i.indexrelid, k.at",
    .references =
        "SELECT fn.nspname::text, f.relname::text, tn.nspname::text, t.relname::text, "
        "c.confdeltype NOT IN ('a', 'r'), c.condeferrable FROM pg_catalog.pg_constraint AS c "
        "JOIN pg_catalog.pg_class AS f ON f.oid = c.conrelid "
        "JOIN pg_catalog.pg_namespace AS fn ON fn.oid = f.relnamespace "
        "JOIN pg_catalog.pg_class AS t ON t.oid = c.confrelid "
        "JOIN pg_catalog.pg_namespace AS tn ON tn.oid = t.relnamespace "
        "WHERE c.contype = 'f' AND c.conparentid = 0"};

constexpr Questions of_mysql{
    .table =
        "SELECT t.table_schema, t.table_name, CASE WHEN t.table_type <> 'BASE TABLE' THEN 'a view' "
        "WHEN e.transactions = 'YES' THEN 'table' ELSE CONCAT('engine ', COALESCE(t.engine, '?')) END "
        "FROM information_schema.tables AS t LEFT JOIN information_schema.engines AS e ON e.engine = t.engine "
        "WHERE t.table_schema = CASE WHEN $1 = '' THEN DATABASE() ELSE $1 END AND t.table_name = $2",
    .columns =
        "SELECT column_name FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2 AND "
        "COALESCE(generation_expression, '') = '' ORDER BY ordinal_position",
    .keys =
        "SELECT index_name, index_name = 'PRIMARY', CASE WHEN sub_part IS NULL THEN column_name END "
        "FROM information_schema.statistics WHERE table_schema = $1 AND table_name = $2 AND non_unique = 0 "
        "ORDER BY index_name = 'PRIMARY' DESC, index_name, seq_in_index",
    .references =
        "SELECT constraint_schema, table_name, unique_constraint_schema, referenced_table_name, "
        "delete_rule NOT IN ('NO ACTION', 'RESTRICT'), 0 FROM information_schema.referential_constraints"};

const Questions& questions_of(const sql::Session& session) {
    switch (session.dialect()) {
        case SqlDialect::sqlite: return of_sqlite;
        case SqlDialect::postgres: return of_postgres;
        case SqlDialect::mysql: break;
    }
    return of_mysql;
}

std::string text_of(const SqlCell& cell) { return cell.value_or(""); }
bool flag_of(const SqlCell& cell) { return cell == "t" || cell == "1"; }

Result<void> read_keys(sql::Session& session, TableInfo& info, Deadline deadline) {
    const auto found = ask(session, std::string(questions_of(session).keys), {info.schema, info.plain}, deadline);
    if (!found) return std::unexpected(found.error());
    std::string last;
    bool usable = false;
    for (std::size_t i = 0; i < found->rows.size(); ++i) {
        const auto& row = found->rows[i];
        if (i == 0 || text_of(row.at(0)) != last) {
            last = text_of(row.at(0));
            usable = true;
            info.unique.emplace_back();
            info.has_primary_key = info.has_primary_key || flag_of(row.at(1));
        }
        if (!usable) continue;
        if (row.at(2)) {
            info.unique.back().push_back(*row.at(2));
            continue;
        }
        // Of an expression, or of a part of a column.
        info.unique.pop_back();
        usable = false;
    }
    return {};
}

struct ForeignKey {
    std::string from_schema{};
    std::string from{};
    std::string to_schema{};
    std::string to{};
    bool rows_follow = false;
    bool deferrable = false;
};

Result<std::vector<ForeignKey>> foreign_keys(sql::Session& session, Deadline deadline) {
    const auto found = ask(session, std::string(questions_of(session).references), {}, deadline);
    if (!found) return std::unexpected(found.error());
    std::vector<ForeignKey> keys;
    for (const auto& row : found->rows)
        keys.push_back({text_of(row.at(0)), text_of(row.at(1)), text_of(row.at(2)), text_of(row.at(3)),
                        flag_of(row.at(4)), flag_of(row.at(5))});
    return keys;
}

bool is(const sql::Session& session, const TableInfo& table, std::string_view schema, std::string_view name) {
    // A foreign key of SQLite has the name as somebody wrote it.
    if (session.dialect() == SqlDialect::sqlite) return same_without_case(table.plain, name);
    return table.schema == schema && table.plain == name;
}

}  // namespace

Result<TableInfo> table_info(sql::Session& session, const std::string& name, Deadline deadline) {
    TableInfo info{.name = name, .plain = name};
    const bool has_schemas = session.dialect() != SqlDialect::sqlite;
    if (const auto dot = name.find('.'); has_schemas && dot != std::string::npos) {
        info.schema = name.substr(0, dot);
        info.plain = name.substr(dot + 1);
    }
    if (same_without_case(std::string_view(info.plain).substr(0, our_prefix.size()), our_prefix))
        return fail(Errc::config, fmt::format("{} is a table of Holdfast's own", printable(name)));
    const Questions& questions = questions_of(session);
    const auto found = ask(session, std::string(questions.table), {info.schema, info.plain}, deadline);
    if (!found) return std::unexpected(found.error());
    if (found->rows.empty())
        return fail(Errc::config, fmt::format("{} has no table {}", session.place(), printable(name)));
    const auto& row = found->rows.front();
    info.schema = text_of(row.at(0));
    info.plain = text_of(row.at(1));
    if (const std::string kind = text_of(row.at(2)); kind.starts_with("engine "))
        return fail(Errc::store_unsafe, fmt::format("the table {} has the {}, which knows no transactions: half of a "
                                                    "sync would stay; ALTER TABLE … ENGINE = InnoDB",
                                                    printable(name), printable(kind)));
    else if (kind != "table")
        return fail(Errc::config, fmt::format("{} is {}", printable(name), kind));
    const std::string schema = has_schemas ? sql::quoted_name(info.schema, session.dialect()) : "main";
    info.quoted = schema + "." + sql::quoted_name(info.plain, session.dialect());
    const auto columns = ask(session, std::string(questions.columns), {info.schema, info.plain}, deadline);
    if (!columns) return std::unexpected(columns.error());
    for (const auto& column : columns->rows) info.columns.push_back(text_of(column.at(0)));
    if (auto read = read_keys(session, info, deadline); !read) return std::unexpected(read.error());
    return info;
}

Result<std::vector<Reference>> references_among(sql::Session& session, const std::vector<TableInfo>& tables,
                                                Deadline deadline) {
    const auto keys = foreign_keys(session, deadline);
    if (!keys) return std::unexpected(keys.error());
    std::vector<Reference> references;
    for (const ForeignKey& key : *keys)
        for (std::size_t from = 0; from < tables.size(); ++from)
            for (std::size_t to = 0; to < tables.size(); ++to)
                if (from != to && is(session, tables[from], key.from_schema, key.from) &&
                    is(session, tables[to], key.to_schema, key.to))
                    references.push_back({from, to, key.deferrable});
    return references;
}

Result<std::vector<std::string>> tables_changed_by_delete(sql::Session& session, const TableInfo& table,
                                                          Deadline deadline) {
    const auto keys = foreign_keys(session, deadline);
    if (!keys) return std::unexpected(keys.error());
    std::vector<std::string> names;
    for (const ForeignKey& key : *keys)
        if (key.rows_follow && is(session, table, key.to_schema, key.to)) names.push_back(key.from);
    return names;
}

Result<std::vector<std::size_t>> parents_first(const std::vector<std::string>& names,
                                               const std::vector<Reference>& references) {
    std::vector<std::size_t> order;
    std::vector<bool> placed(names.size(), false);
    // What the database checks at the end may be out of order, if it has to.
    bool pass_deferrable = false;
    while (order.size() < names.size()) {
        const auto waits = [&](std::size_t table) {
            return std::ranges::any_of(references, [&](const Reference& reference) {
                return reference.from == table && !placed[reference.to] && !(pass_deferrable && reference.deferrable);
            });
        };
        std::size_t next = 0;
        while (next < names.size() && (placed[next] || waits(next))) ++next;
        if (next < names.size()) {
            placed[next] = true;
            order.push_back(next);
            pass_deferrable = false;
            continue;
        }
        if (pass_deferrable) {
            std::vector<std::string> circle;
            for (std::size_t i = 0; i < names.size(); ++i)
                if (!placed[i]) circle.push_back(printable(names[i]));
            return fail(Errc::config, fmt::format("{} refer to each other, and the database checks that row by row; "
                                                  "make one of the foreign keys DEFERRABLE where it can be",
                                                  fmt::join(circle, ", ")));
        }
        pass_deferrable = true;
    }
    return order;
}

}  // namespace holdfast::guards::data
