#pragma once

#include "holdfast/lease.hpp"
#include "stores/mysql/server_facts.hpp"

#include <optional>

namespace holdfast::stores::mysql {

inline constexpr std::int64_t our_format = 3;
// Older formats can be read, and the first change upgrades them.
/// The same tables, but without events of kinds that older programs cannot read.
inline constexpr std::int64_t format_without_new_events = 2;
/// Has no column `used`, either.
inline constexpr std::int64_t format_without_mark = 1;
/// Between that and ours: see `upgrade`.
inline constexpr std::int64_t format_in_between = 0;
/// A condition on the row of `holdfast_meta`, to be continued: a store of our format that has had a lock, on a server
/// that is not read-only. As text read_only is 0 or OFF, depending on the version.
inline constexpr Sql::Text is_store =
    "id = 1 AND format = 3 AND used = 1 AND CONCAT(@@global.read_only) IN ('0', 'OFF') AND ";
static_assert(our_format == 3);

/// The first statement of every packet that reads the tables: asks for the time and the store's identity. Works with
/// every format that we know.
[[nodiscard]] Sql identity_query(const Clock& clock);
/// The same columns for a statement that asks for more, in a store of our format. It must call the table `m` and select
/// its row with the id 1.
[[nodiscard]] Sql identity_columns(const Clock& clock);
inline constexpr std::size_t columns_of_identity = 5;

struct Identity {
    Instant now{};
    StoreId store_id{};
    bool read_only = false;  ///< The server is read-only for all but administrators.
    std::int64_t format = our_format;
    bool was_used = false;  ///< It has had a lock. Always false without the mark.

    [[nodiscard]] bool is_old() const { return format != our_format; }
    [[nodiscard]] bool has_mark() const { return format >= format_without_new_events; }
};

/// From the answer to `identity_query`. Empty for a store that nobody has finished creating; refused with
/// `format_unsupported` for a store of a newer Holdfast.
[[nodiscard]] Result<std::optional<Identity>> identity_in(Answer& answer);
/// `used`: the index of the column with the mark of use, if there is one.
[[nodiscard]] Result<Identity> identity_in(const Row& row, std::optional<std::size_t> used);

/// The store that is there, if there is one.
[[nodiscard]] Result<std::optional<Identity>> identify(Connection& connection, const Clock& clock, Deadline deadline);

/// Creates the store. Other clients may do the same at this moment; all get the same store, in an older format if the
/// first of them is an older program.
[[nodiscard]] Result<Identity> create(Connection& connection, const Clock& clock, Deadline deadline);

/// Gives a store of an older format ours. Other clients may do the same at this moment, use the store, or have stopped
/// half way.
[[nodiscard]] Result<Identity> upgrade(Connection& connection, const Clock& clock, Deadline deadline);

}  // namespace holdfast::stores::mysql
