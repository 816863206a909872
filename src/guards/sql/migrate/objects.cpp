#include "guards/sql/migrate/objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace holdfast::guards::migrate {
namespace {

constexpr std::string_view objects_table = "holdfast_objects";
/// A row that says whether a run is under way. Not the name of a kind. Behind `open` stand digests of the objects that
/// were not as they should be when it began, one in each line: what else changed is the work of the run, also if it was
/// cut off.
const ObjectName run_mark{"run", ""};
constexpr std::string_view open = "open";
constexpr std::string_view complete = "complete";
/// In the place of a fingerprint: another program made it.
constexpr std::string_view strange;

// One row for each object: its kind, its name, and a text that changes with it.

constexpr std::string_view in_sqlite = R"(
SELECT type, name, coalesce(sql, '') FROM main.sqlite_master
WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\' AND tbl_name NOT LIKE 'holdfast\_%' ESCAPE '\')";

constexpr std::string_view in_postgres = R"(
WITH s AS (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1),
     r AS (SELECT c.* FROM pg_catalog.pg_class c JOIN s ON c.relnamespace = s.oid WHERE c.relname NOT LIKE 'holdfast\_%')
SELECT CASE r.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'view' WHEN 'S' THEN 'sequence' ELSE 'table' END,
    r.relname::text,
    concat(r.relkind, r.relpersistence, CASE WHEN r.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(r.oid) END,
        (SELECT pg_catalog.string_agg(concat(a.attname, ' ', pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull,
                    a.attidentity, a.attgenerated, pg_catalog.pg_get_expr(d.adbin, d.adrelid)), ',' ORDER BY a.attnum)
         FROM pg_catalog.pg_attribute a
         LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
         WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped),
        (SELECT pg_catalog.string_agg(concat(o.conname, pg_catalog.pg_get_constraintdef(o.oid)), ',' ORDER BY o.conname)
         FROM pg_catalog.pg_constraint o WHERE o.conrelid = r.oid))
FROM r WHERE r.relkind IN ('r', 'p', 'f', 'v', 'm', 'S')
UNION ALL
SELECT 'index', r.relname::text, concat(i.indisvalid, pg_catalog.pg_get_indexdef(r.oid))
FROM r JOIN pg_catalog.pg_index i ON i.indexrelid = r.oid
UNION ALL
SELECT 'function', concat(p.proname, '(', pg_catalog.pg_get_function_identity_arguments(p.oid), ')'),
    concat(p.prosrc, p.prosecdef, p.provolatile, pg_catalog.pg_get_function_result(p.oid),
        pg_catalog.to_jsonb(p) ->> 'prosqlbody')
FROM pg_catalog.pg_proc p JOIN s ON p.pronamespace = s.oid
WHERE p.proname NOT LIKE 'holdfast\_%' AND NOT EXISTS
    (SELECT 1 FROM pg_catalog.pg_depend e WHERE e.objid = p.oid AND e.deptype = 'e')
UNION ALL
SELECT 'trigger', concat(r.relname, '.', t.tgname), concat(t.tgenabled, pg_catalog.pg_get_triggerdef(t.oid))
FROM pg_catalog.pg_trigger t JOIN r ON t.tgrelid = r.oid WHERE NOT t.tgisinternal
UNION ALL
SELECT 'type', y.typname::text,
    (SELECT pg_catalog.string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e
     WHERE e.enumtypid = y.oid)
FROM pg_catalog.pg_type y JOIN s ON y.typnamespace = s.oid WHERE y.typtype = 'e')";

constexpr std::string_view in_mysql = R"(
SELECT 'table', t.table_name, concat(coalesce(t.engine, ''), coalesce(t.table_collation, ''),
    coalesce((SELECT sha2(group_concat(concat_ws(' ', c.column_name, c.column_type, c.is_nullable, c.column_default,
                  c.extra, c.collation_name) ORDER BY c.ordinal_position), 256)
              FROM information_schema.columns c
              WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name), ''),
    coalesce((SELECT sha2(group_concat(concat_ws(' ', s.index_name, s.seq_in_index, s.column_name, s.non_unique,
                  s.sub_part) ORDER BY s.index_name, s.seq_in_index), 256)
              FROM information_schema.statistics s
              WHERE s.table_schema = t.table_schema AND s.table_name = t.table_name), ''))
FROM information_schema.tables t
WHERE t.table_schema = $1 AND t.table_type = 'BASE TABLE' AND t.table_name NOT LIKE 'holdfast\_%'
UNION ALL
SELECT 'view', v.table_name, v.view_definition FROM information_schema.views v WHERE v.table_schema = $1
UNION ALL
SELECT lower(r.routine_type), r.routine_name, coalesce(r.routine_definition, '') FROM information_schema.routines r
WHERE r.routine_schema = $1 AND r.routine_name NOT LIKE 'holdfast\_%'
UNION ALL
SELECT 'trigger', g.trigger_name,
    concat(g.event_object_table, g.action_timing, g.event_manipulation, g.action_statement)
FROM information_schema.triggers g WHERE g.trigger_schema = $1)";

struct RunMark {
    bool is_open = false;
    std::set<std::string> drifted{};
};

/// Short, because a TEXT of MySQL has room for 64 KiB.
std::string digest_of(const ObjectName& object) {
    return checksum_of(object.first + '\n' + object.second).substr(0, 16);
}

RunMark mark_of(const Objects& kept) {
    RunMark mark;
    const auto row = kept.find(run_mark);
    if (row == kept.end() || !row->second.starts_with(open)) return mark;
    mark.is_open = true;
    std::istringstream lines(row->second.substr(open.size()));
    for (std::string line; std::getline(lines, line);)
        if (!line.empty()) mark.drifted.insert(line);
    return mark;
}

std::string text_of(const RunMark& mark) {
    std::string text(mark.is_open ? open : complete);
    for (const std::string& digest : mark.drifted) text += '\n' + digest;
    return text;
}

/// What is not as it was kept.
Objects drifted(const Objects& kept, const Objects& now) {
    Objects found;
    for (const auto& [object, fingerprint] : kept) {
        if (object == run_mark || fingerprint == strange) continue;
        const auto is = now.find(object);
        if (is == now.end() || is->second != fingerprint) found[object] = fingerprint;
    }
    return found;
}

std::string_view text_of(SqlDialect dialect) {
    switch (dialect) {
        case SqlDialect::sqlite: return in_sqlite;
        case SqlDialect::postgres: return in_postgres;
        case SqlDialect::mysql: break;
    }
    return in_mysql;
}

Result<Objects> kept_in(sql::Session& session, const LedgerTable& table, Deadline deadline) {
    const auto there = table.has_table(session, objects_table, deadline);
    if (!there) return std::unexpected(there.error());
    Objects kept;
    if (!*there) return kept;
    const auto found = session.run(
        {.text = fmt::format("SELECT kind, name, fingerprint FROM {}{}", table.prefix(), objects_table), .values = {}},
        deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "read holdfast_objects"));
    for (const auto& row : found->rows) kept[{row.at(0).value_or(""), row.at(1).value_or("")}] = row.at(2).value_or("");
    return kept;
}

sql::Command put(const LedgerTable& table, const ObjectName& object, std::string_view fingerprint) {
    const bool mysql = table.dialect() == SqlDialect::mysql;
    return {.text = fmt::format("INSERT INTO {}{} (kind, name, fingerprint) VALUES ($1, $2, $3) {} fingerprint = $3",
                                table.prefix(), objects_table,
                                mysql ? "ON DUPLICATE KEY UPDATE" : "ON CONFLICT (kind, name) DO UPDATE SET"),
            .values = {object.first, object.second, std::string(fingerprint)}};
}

sql::Command remove(const LedgerTable& table, const ObjectName& object) {
    return {.text = fmt::format("DELETE FROM {}{} WHERE kind = $1 AND name = $2", table.prefix(), objects_table),
            .values = {object.first, object.second}};
}

}  // namespace

Result<Objects> objects_of(sql::Session& session, const LedgerTable& table, Deadline deadline) {
    sql::Command command{.text = std::string(text_of(table.dialect())), .values = {}};
    if (table.dialect() != SqlDialect::sqlite) command.values = {table.schema()};
    if (table.dialect() == SqlDialect::mysql) {
        // What is cut off would not be compared.
        const auto longer = session.run({.text = "SET SESSION group_concat_max_len = 1048576", .values = {}}, deadline);
        if (!longer) return std::unexpected(sql::error_of(longer.error(), "look at the schema"));
    }
    const auto found = session.run(command, deadline);
    if (!found) return std::unexpected(sql::error_of(found.error(), "look at the schema"));
    Objects objects;
    for (const auto& row : found->rows)
        objects[{row.at(0).value_or(""), row.at(1).value_or("")}] = checksum_of(row.at(2).value_or(""));
    return objects;
}

Result<ObjectsBefore> begin_objects(Runner& runner) {
    const Deadline deadline = runner.soon();
    const bool mysql = runner.table().dialect() == SqlDialect::mysql;
    const std::string_view key = mysql ? "VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin" : "TEXT";
    const auto made = runner.table().create_table(
        runner.session(), objects_table,
        fmt::format("kind {} NOT NULL, name {} NOT NULL, fingerprint TEXT NOT NULL, PRIMARY KEY (kind, name)",
                    mysql ? "VARCHAR(20) CHARACTER SET ascii" : "TEXT", key),
        deadline);
    if (!made) return std::unexpected(made.error());
    auto objects = objects_of(runner.session(), runner.table(), deadline);
    if (!objects) return std::unexpected(objects.error());
    const auto kept = kept_in(runner.session(), runner.table(), deadline);
    if (!kept) return std::unexpected(kept.error());
    RunMark mark = mark_of(*kept);
    const bool was_cut_off = std::exchange(mark.is_open, true);
    std::vector<sql::Command> commands;
    for (const auto& [object, fingerprint] : drifted(*kept, *objects)) {
        const auto now = objects->find(object);
        if (!was_cut_off)
            mark.drifted.insert(digest_of(object));
        else if (!mark.drifted.contains(digest_of(object)))
            commands.push_back(now == objects->end() ? remove(runner.table(), object)
                                                     : put(runner.table(), object, now->second));
    }
    for (const auto& [object, fingerprint] : *objects)
        if (!kept->contains(object))
            commands.push_back(put(runner.table(), object, was_cut_off ? fingerprint : strange));
    commands.push_back(put(runner.table(), run_mark, text_of(mark)));
    if (auto written = runner.write(commands); !written) return std::unexpected(written.error());
    return ObjectsBefore{*std::move(objects)};
}

Result<void> keep_objects(Runner& runner, const ObjectsBefore& before) {
    const auto now = objects_of(runner.session(), runner.table(), runner.soon());
    if (!now) return std::unexpected(now.error());
    std::vector<sql::Command> commands{put(runner.table(), run_mark, complete)};
    for (const auto& [object, fingerprint] : *now) {
        // What somebody changed by hand before stays a drift.
        const auto was = before.objects.find(object);
        if (was == before.objects.end() || was->second != fingerprint)
            commands.push_back(put(runner.table(), object, fingerprint));
    }
    for (const auto& [object, fingerprint] : before.objects)
        if (!now->contains(object)) commands.push_back(remove(runner.table(), object));
    return runner.write(commands);
}

Result<std::vector<Drift>> find_drift(sql::Session& session, const LedgerTable& table, Deadline deadline) {
    const auto kept = kept_in(session, table, deadline);
    if (!kept) return std::unexpected(kept.error());
    const auto now = objects_of(session, table, deadline);
    if (!now) return std::unexpected(now.error());
    const RunMark mark = mark_of(*kept);
    std::vector<Drift> found;
    for (const auto& [object, fingerprint] : drifted(*kept, *now)) {
        if (mark.is_open && !mark.drifted.contains(digest_of(object))) continue;
        found.push_back({now->contains(object) ? Drift::Kind::changed : Drift::Kind::missing, object});
    }
    for (const auto& [object, fingerprint] : *now) {
        const auto known = kept->find(object);
        if (known == kept->end() || known->second == strange) found.push_back({Drift::Kind::not_ours, object});
    }
    return found;
}

}  // namespace holdfast::guards::migrate
