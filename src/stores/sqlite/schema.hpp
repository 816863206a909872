#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/lease.hpp"
#include "stores/sqlite/connection.hpp"

#include <cstdint>
#include <optional>

namespace holdfast::stores::sqlite {

/// The `user_version` of a database that we write.
inline constexpr std::int64_t our_format = 3;
/// The same tables, but without events of kinds that older programs cannot read. Can be read; the first change upgrades
/// it.
inline constexpr std::int64_t old_format = 2;

struct Identity {
    StoreId store_id{};
    bool was_used = false;  ///< See `mark_used`.
    std::int64_t format = our_format;
};

/// Whether the database is one of ours, of a format that we know, and unaltered.
///
/// Empty for a database without content. `format_unsupported` for what another program or a newer
/// Holdfast wrote, `record_corrupt` for our own format with something missing, added or changed.
[[nodiscard]] Result<std::optional<Identity>> identify(Database& database);

/// Creates everything in one transaction.
[[nodiscard]] Result<StoreId> create_schema(Database& database, const Clock& clock);

/// Gives a database of the older format ours, unless somebody else did meanwhile: from then on older programs cannot
/// open it. Only inside the gate.
[[nodiscard]] Result<void> upgrade_schema(Database& database);

/// Notes that the store has had a lock, in the transaction that writes the first one: if a database with this mark has
/// no locks, they were removed.
[[nodiscard]] Result<void> mark_used(Database& database, const StoreId& store_id, Instant now);

}  // namespace holdfast::stores::sqlite
