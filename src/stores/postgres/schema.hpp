#pragma once

#include "stores/postgres/statements.hpp"

namespace holdfast::stores::postgres {

/// Of the tables in schema.sql.
inline constexpr std::int64_t our_format = 2;
/// Has no `meta.used`. It can be read, and the first change upgrades it.
inline constexpr std::int64_t format_without_mark = 1;

/// What `meta` says of a store.
struct Identity {
    StoreId store_id{};
    std::int64_t format = 0;
    bool was_used = false;  ///< It has had a lock. Of an older format nothing is known.

    [[nodiscard]] bool is_old() const { return format != our_format; }
};

/// From the answer to `Statements::enter`. `format_unsupported` for a newer format.
[[nodiscard]] Result<Identity> read_identity(const Rows& rows);

/// Whether a fault of `Statements::enter` says that nobody has created the store yet.
[[nodiscard]] bool is_missing(const Fault& fault);
/// Whether it says that the store may have the older format.
[[nodiscard]] bool has_no_mark(const Fault& fault);

/// Creates everything in one transaction, unless somebody else did meanwhile.
[[nodiscard]] Result<void> create_store(Connection& connection, const Settings& settings, const CallBudget& budget);

/// Gives a store of an older format ours, in one transaction, unless somebody else did meanwhile.
[[nodiscard]] Result<void> upgrade_store(Connection& connection, const Settings& settings, const CallBudget& budget);

}  // namespace holdfast::stores::postgres
