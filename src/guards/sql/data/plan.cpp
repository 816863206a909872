// What is to be done, from the files, the configuration and the catalog of the database.
#include "guards/sql/data/sync.hpp"
#include "values/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace holdfast::guards::data {
namespace {

bool same_name(SqlDialect dialect, std::string_view a, std::string_view b) {
    if (dialect == SqlDialect::postgres) return a == b;
    const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::ranges::equal(a, b, {}, small, small);
}

std::vector<std::string> shown(const std::vector<std::string>& names) {
    std::vector<std::string> result;
    for (const std::string& name : names) result.push_back(printable(name));
    return result;
}

/// The columns of the files, as the table calls them.
Result<std::vector<std::string>> columns_of(const TableSource& source, const TableInfo& info, SqlDialect dialect) {
    std::vector<std::string> columns;
    for (const Column& column : source.columns) {
        const auto found = std::ranges::find_if(
            info.columns, [&](const std::string& name) { return same_name(dialect, name, column.name); });
        if (found == info.columns.end())
            return refuse(
                source.columns_path, column.line,
                fmt::format("the table {} has no column \"{}\" that can be written; it has {}", printable(info.name),
                            printable(column.name), fmt::join(shown(info.columns), ", ")));
        if (std::ranges::find(columns, *found) != columns.end())
            return refuse(source.columns_path, column.line,
                          fmt::format("the column \"{}\" is there twice", printable(*found)));
        columns.push_back(*found);
    }
    return columns;
}

/// The columns by which rows are found again. Empty for `truncate` without a key.
Result<std::vector<std::string>> key_of(const TableSource& source, const TableInfo& info, SqlDialect dialect) {
    const TableSpec& spec = source.spec;
    if (spec.key.empty()) {
        if (spec.strategy == Strategy::truncate) return std::vector<std::string>();
        if (info.has_primary_key && !info.unique.empty()) return info.unique.front();
        return fail(Errc::config, fmt::format("the table {} has no primary key; name the columns by which {} finds its "
                                              "rows: key = [\"…\"]",
                                              printable(info.name), name_of(spec.strategy)));
    }
    std::vector<std::string> key;
    for (const std::string& name : spec.key) {
        const auto found = std::ranges::find_if(
            info.columns, [&](const std::string& column) { return same_name(dialect, column, name); });
        if (found == info.columns.end())
            return fail(Errc::config, fmt::format("the table {} has no column \"{}\" for its key", printable(info.name),
                                                  printable(name)));
        key.push_back(*found);
    }
    // One row of a file would change several.
    const bool is_unique = std::ranges::any_of(
        info.unique, [&](const auto& columns) { return std::ranges::is_permutation(columns, key); });
    if (!is_unique && spec.strategy != Strategy::truncate)
        return fail(Errc::config, fmt::format("the key ({}) of {} is no primary key and no unique index of that table",
                                              fmt::join(shown(key), ", "), printable(info.name)));
    return key;
}

Result<TablePlan> plan_table(const TableSource& source, TableInfo info, SqlDialect dialect, std::size_t number) {
    TablePlan plan{.source = &source, .info = std::move(info)};
    const auto columns = columns_of(source, plan.info, dialect);
    if (!columns) return std::unexpected(columns.error());
    const auto key = key_of(source, plan.info, dialect);
    if (!key) return std::unexpected(key.error());
    const bool staged = source.spec.strategy != Strategy::truncate;
    for (const std::string& name : *key) {
        const auto found = std::ranges::find(*columns, name);
        // Without any column there is no row either.
        if (found == columns->end() && !columns->empty())
            return refuse(source.columns_path, source.columns.front().line,
                          fmt::format("the column \"{}\" is missing, which is the key of {}", printable(name),
                                      printable(plan.info.name)));
        plan.key.push_back(static_cast<std::size_t>(found - columns->begin()));
    }
    plan.statements = statements_for(dialect, plan.info, *columns, staged ? *key : std::vector<std::string>(), number);
    return plan;
}

/// `truncate` deletes all rows of a table and inserts them again. Rows of other tables, which would not be inserted
/// again, must not be deleted with them by ON DELETE.
Result<void> expect_no_dependents(sql::Session& session, const SyncPlan& plan, Deadline deadline) {
    for (const TablePlan& table : plan) {
        if (table.strategy() != Strategy::truncate) continue;
        const auto dependents = tables_changed_by_delete(session, table.info, deadline);
        if (!dependents) return std::unexpected(dependents.error());
        for (const std::string& name : *dependents) {
            const bool is_refilled = std::ranges::any_of(plan, [&](const TablePlan& other) {
                return other.info.plain == name && other.strategy() == Strategy::truncate;
            });
            if (!is_refilled)
                return fail(Errc::config,
                            fmt::format("truncate of {} would also delete or change rows of {}, by ON DELETE; use "
                                        "mirror, which deletes only what left the files",
                                        printable(table.info.name), printable(name)));
        }
    }
    return {};
}

}  // namespace

Result<SyncPlan> plan_sync(sql::Session& session, const Source& source, Deadline deadline) {
    std::vector<TableInfo> infos;
    std::vector<std::string> names;
    for (const TableSource& table : source.tables()) {
        auto info = table_info(session, table.spec.name, deadline);
        if (!info) return std::unexpected(info.error());
        if (std::ranges::any_of(infos, [&](const TableInfo& other) { return other.quoted == info->quoted; }))
            return fail(Errc::config, fmt::format("the table {} is there twice", printable(info->quoted)));
        names.push_back(info->name);
        infos.push_back(*std::move(info));
    }
    const auto references = references_among(session, infos, deadline);
    if (!references) return std::unexpected(references.error());
    const auto order = parents_first(names, *references);
    if (!order) return std::unexpected(order.error());
    SyncPlan plan;
    for (const std::size_t at : *order) {
        auto table = plan_table(source.tables()[at], std::move(infos[at]), session.dialect(), plan.size() + 1);
        if (!table) return std::unexpected(table.error());
        plan.push_back(*std::move(table));
    }
    if (auto expected = expect_no_dependents(session, plan, deadline); !expected)
        return std::unexpected(expected.error());
    return plan;
}

}  // namespace holdfast::guards::data
