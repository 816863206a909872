#pragma once

#include "stores/postgres/statements.hpp"

namespace holdfast::stores::postgres {

/// Of the tables in schema.sql.
inline constexpr std::int64_t our_format = 1;

/// Whose store it is, from the answer to `Statements::enter`. `format_unsupported` for a newer format.
[[nodiscard]] Result<StoreId> read_identity(const Rows& rows);

/// Whether a fault of `Statements::enter` says that nobody has created the store yet.
[[nodiscard]] bool is_missing(const Fault& fault);

/// Creates everything in one transaction, unless somebody else did meanwhile.
[[nodiscard]] Result<void> create_store(Connection& connection, const Settings& settings, const Budget& budget);

}  // namespace holdfast::stores::postgres
