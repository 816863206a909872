#pragma once

#include "guards/sql/migrate/lexer.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "sql/session.hpp"

#include <optional>
#include <string>
#include <string_view>

/// What a statement that commits by itself changes. A process that dies beside such a statement leaves no word whether
/// it was done; what it was to change tells.
namespace holdfast::guards::migrate {

struct ChangeTarget {
    enum class Kind { table, view, procedure, function, trigger, event, index };
    Kind kind = Kind::table;
    std::string name{};  ///< As it is written, quotes and schema included.
};

/// Absent where a statement changes several things, or something that cannot be looked at.
[[nodiscard]] std::optional<ChangeTarget> target_of(std::string_view statement, SqlDialect dialect);

/// True if running the statement once more does no harm, as with VACUUM, ANALYZE and REINDEX.
[[nodiscard]] bool is_repeatable(std::string_view statement, SqlDialect dialect);

/// How that looks now: words that change when the statement was done. `absent` where it is not there.
[[nodiscard]] Result<std::string> look_at(sql::Session& session, const ChangeTarget& target, Deadline deadline);

/// CREATE INDEX CONCURRENTLY: the name of the index, if it has one.
[[nodiscard]] std::optional<std::string> concurrent_index_of(std::string_view statement, SqlDialect dialect);

}  // namespace holdfast::guards::migrate
