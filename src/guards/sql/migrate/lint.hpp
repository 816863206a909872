#pragma once

#include "guards/sql/migrate/folder.hpp"
#include "guards/sql/migrate/splitter.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::guards::migrate {

/// A statement that can do harm to a database in use.
struct Finding {
    std::string path{};
    std::size_t line = 1;
    std::string_view rule{};  ///< `drop`
    std::string message{};
};

struct LintRule {
    std::string_view name;
    std::string_view meaning;  ///< For the manual.
};

/// All rules, in the order of the documentation.
[[nodiscard]] std::span<const LintRule> lint_rules();

/// Looks at each statement of `file`. A line `-- holdfast: accept RULE` before a statement, or at the end of one of its
/// lines, accepts what the rule finds there; in the first lines of the file, in all of it.
[[nodiscard]] std::vector<Finding> lint(const MigrationFile& file, Dialect dialect);

/// Whether this statement begins or ends a transaction. A file must not contain one: its row of the ledger is
/// written in the transaction around the whole file.
[[nodiscard]] bool is_transaction_command(std::string_view statement, Dialect dialect);

/// Whether it changes or drops a table that Holdfast keeps in the database: nobody but Holdfast may.
[[nodiscard]] bool changes_our_tables(std::string_view statement, Dialect dialect);

/// Whether MySQL commits before and after it.
[[nodiscard]] bool commits_by_itself(std::string_view statement, Dialect dialect);

/// Whether it leaves the session otherwise than it found it, beyond the transaction: a setting, a temporary table, a
/// lock of the session.
[[nodiscard]] bool outlives_transaction(std::string_view statement, Dialect dialect);

}  // namespace holdfast::guards::migrate
