#pragma once

#include "stores/postgres/statements.hpp"

namespace holdfast::stores::postgres {

/// The format of the tables in schema.sql.
inline constexpr std::int64_t our_format = 3;
// Older formats can be read, and the first change upgrades them.
/// The same tables, but without events of kinds that older programs cannot read.
inline constexpr std::int64_t format_without_new_events = 2;
/// Has no `meta.used`, either.
inline constexpr std::int64_t format_without_mark = 1;

/// What `meta` says of a store.
struct Identity {
    StoreId store_id{};
    std::int64_t format = 0;
    bool was_used = false;  ///< It has had a lock. Always false without the mark.

    [[nodiscard]] bool is_old() const { return format != our_format; }
    [[nodiscard]] bool has_mark() const { return format != format_without_mark; }
};

/// From the answer to `Statements::enter`. `format_unsupported` for a newer format.
[[nodiscard]] Result<Identity> read_identity(const Rows& rows);

/// Whether a fault of `Statements::enter` says that nobody has created the store yet.
[[nodiscard]] bool is_missing(const Fault& fault);
/// Whether it says that the store may have the older format.
[[nodiscard]] bool has_no_mark(const Fault& fault);

/// Creates everything in one transaction, unless somebody else did meanwhile.
[[nodiscard]] Result<void> create_store(Connection& connection, const Settings& settings,
                                        const base::CallBudget& budget);

/// Gives a store of an older format ours, in one transaction, unless somebody else did meanwhile.
[[nodiscard]] Result<void> upgrade_store(Connection& connection, const Settings& settings,
                                         const base::CallBudget& budget);

}  // namespace holdfast::stores::postgres
