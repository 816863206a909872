#include "guards/sql/migrate/target.hpp"

#include "guards/sql/migrate/folder.hpp"
#include "guards/sql/migrate/tokens.hpp"

#include <fmt/format.h>

namespace holdfast::guards::migrate {
namespace {

using Kind = ChangeTarget::Kind;

std::string_view word_of(Kind kind) {
    switch (kind) {
        case Kind::table: return "TABLE";
        case Kind::view: return "VIEW";
        case Kind::procedure: return "PROCEDURE";
        case Kind::function: return "FUNCTION";
        case Kind::trigger: return "TRIGGER";
        case Kind::event: return "EVENT";
        case Kind::index: return "INDEX";
    }
    std::abort();
}

/// `AUTO_INCREMENT=7` changes with every row.
std::string without_counter(std::string text) {
    constexpr std::string_view counter = " AUTO_INCREMENT=";
    const auto at = text.find(counter);
    if (at == std::string::npos) return text;
    const auto end = text.find_first_not_of("0123456789", at + counter.size());
    return text.erase(at, end == std::string::npos ? end : end - at);
}

std::optional<ChangeTarget> named(const Tokens& tokens, Kind kind, std::size_t at) {
    std::string name = tokens.name_at(at);
    if (name.empty() || (at < tokens.size() && tokens[at].is(','))) return std::nullopt;
    return ChangeTarget{kind, std::move(name)};
}

std::optional<ChangeTarget> mysql_target(const Tokens& tokens) {
    if (const auto on = tokens.match(0, {"CREATE", "UNIQUE|FULLTEXT|SPATIAL?", "INDEX"})) {
        const auto table = tokens.find({"ON"}, *on);
        return table ? named(tokens, Kind::table, *table) : std::nullopt;
    }
    if (tokens.begins_with({"DROP", "INDEX"})) {
        const auto table = tokens.find({"ON"});
        return table ? named(tokens, Kind::table, *table) : std::nullopt;
    }
    for (const Kind kind : {Kind::table, Kind::view, Kind::procedure, Kind::function, Kind::trigger, Kind::event}) {
        // What stands between, as in CREATE DEFINER = a@b PROCEDURE, has no end that could be told; so the first word.
        if (!tokens.begins_with({"CREATE|ALTER|DROP|RENAME"})) return std::nullopt;
        for (std::size_t at = 1; at < tokens.size() && at < 12; ++at) {
            if (!tokens[at].is(word_of(kind))) continue;
            const auto behind = tokens.match(at + 1, {"IF?", "NOT?", "EXISTS?"});
            return named(tokens, kind, *behind);
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<ChangeTarget> target_of(std::string_view statement, SqlDialect dialect) {
    const Tokens tokens(statement, dialect);
    if (dialect == SqlDialect::mysql) return mysql_target(tokens);
    if (dialect == SqlDialect::sqlite) return std::nullopt;
    if (const auto index = concurrent_index_of(statement, dialect)) return ChangeTarget{Kind::index, *index};
    if (const auto behind = tokens.match(0, {"DROP", "INDEX", "CONCURRENTLY", "IF?", "EXISTS?"}))
        return named(tokens, Kind::index, *behind);
    return std::nullopt;
}

bool is_repeatable(std::string_view statement, SqlDialect dialect) {
    const Tokens tokens(statement, dialect);
    return tokens.begins_with({"VACUUM|ANALYZE|REINDEX|CLUSTER|PRAGMA|OPTIMIZE|FLUSH|TRUNCATE|SET|RESET|USE|LISTEN"}) ||
           tokens.begins_with({"CREATE", "OR", "REPLACE"});
}

std::optional<std::string> concurrent_index_of(std::string_view statement, SqlDialect dialect) {
    if (dialect != SqlDialect::postgres) return std::nullopt;
    const Tokens tokens(statement, dialect);
    const auto behind = tokens.match(0, {"CREATE", "UNIQUE?", "INDEX", "CONCURRENTLY", "IF?", "NOT?", "EXISTS?"});
    if (!behind || tokens.match(*behind, {"ON"})) return std::nullopt;
    std::size_t at = *behind;
    std::string name = tokens.name_at(at);
    if (name.empty()) return std::nullopt;
    // An index is in the schema of its table.
    auto table = tokens.find({"ON", "ONLY?"}, at);
    if (!table) return std::nullopt;
    const std::string of = tokens.name_at(*table);
    if (const auto dot = of.rfind('.'); dot != std::string::npos) name = of.substr(0, dot + 1) + name;
    return name;
}

Result<std::string> look_at(sql::Session& session, const ChangeTarget& target, Deadline deadline) {
    if (target.kind == Kind::index) {
        const auto found = session.run({.text = "SELECT indisvalid FROM pg_catalog.pg_index WHERE indexrelid = "
                                                "pg_catalog.to_regclass($1)",
                                        .values = {target.name}},
                                       deadline);
        if (!found) return std::unexpected(sql::error_of(found.error(), "look at " + target.name));
        if (found->rows.empty()) return "absent";
        return found->rows[0].at(0) == "t" ? "valid" : "invalid";
    }
    const auto found = session.run(
        {.text = fmt::format("SHOW CREATE {} {}", word_of(target.kind), target.name), .values = {}}, deadline);
    // Each kind has a code of its own for what is not there; a view is shown as a table.
    if (!found) {
        if (found.error().kind == sql::ErrorClass::connection_lost)
            return std::unexpected(sql::error_of(found.error(), "look at " + target.name));
        return "absent";
    }
    std::string all;
    for (const auto& row : found->rows)
        for (const SqlCell& cell : row) all += without_counter(cell.value_or("")) + '\n';
    return checksum_of(all);
}

}  // namespace holdfast::guards::migrate
