#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/lease.hpp"
#include "stores/sqlite/database.hpp"

#include <optional>

namespace holdfast::stores::sqlite {

/// Whether the database is one of ours, of a format that we know, and unaltered.
///
/// Empty for a database without content. `format_unsupported` for what another program or a newer
/// Holdfast wrote, `record_corrupt` for our own format with something missing, added or changed.
[[nodiscard]] Result<std::optional<StoreId>> identify(Database& database);

/// Creates everything in one transaction.
[[nodiscard]] Result<StoreId> create_schema(Database& database, const Clock& clock);

}  // namespace holdfast::stores::sqlite
