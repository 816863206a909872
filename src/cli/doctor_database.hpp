#pragma once

#include "cli/context.hpp"
#include "guards/sql/migrate/database.hpp"

#include <vector>

namespace holdfast::cli {

/// What `doctor` finds out about a SQL database that is fenced or migrated: who sealed it, what is protected, what is
/// not covered, and whether a migration stopped half way. Changes nothing.
[[nodiscard]] std::vector<Finding> examine_database(const Context& context, const guards::migrate::Database& database);

/// Whether the database has a fence or migrations.
[[nodiscard]] bool is_guarded(const Context& context, const guards::migrate::Database& database);

}  // namespace holdfast::cli
