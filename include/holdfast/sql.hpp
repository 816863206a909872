#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// What goes into a SQL statement and what comes out of it, the same for every database.
namespace [[gnu::visibility("default")]] holdfast {

enum class SqlDialect { sqlite, postgres, mysql };

/// Bytes that are not text.
struct SqlBytes {
    std::string bytes{};
    [[nodiscard]] bool operator==(const SqlBytes&) const = default;
};

/// A value for `$1`, `$2`… of a statement. It is bound and never becomes SQL. The first alternative is NULL.
using SqlValue = std::variant<std::monostate, std::int64_t, std::string, SqlBytes>;

/// A field as the database writes it as text; bytes as they are. Absent: NULL.
using SqlCell = std::optional<std::string>;

/// What one statement answered.
struct SqlAnswer {
    std::vector<std::string> columns{};
    std::vector<std::vector<SqlCell>> rows{};
    std::int64_t changed = 0;  ///< Rows that it found to change, or added, or removed.
};

}  // namespace holdfast
