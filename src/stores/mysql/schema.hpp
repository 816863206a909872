#pragma once

#include "holdfast/lease.hpp"
#include "stores/mysql/server_facts.hpp"

#include <optional>

namespace holdfast::stores::mysql {

inline constexpr std::int64_t our_format = 2;
/// Has no column `used`. It can be read, and the first change upgrades it.
inline constexpr std::int64_t format_without_mark = 1;
/// Between the two: see `upgrade`.
inline constexpr std::int64_t format_in_between = 0;
/// Of a row of `holdfast_meta`: a store of our format that has had a lock, on a server that may be written to; a
/// condition is to follow. As text the last is 0 or OFF, which depends on the version.
inline constexpr Sql::Text is_store =
    "id = 1 AND format = 2 AND used = 1 AND CONCAT(@@global.read_only) IN ('0', 'OFF') AND ";
static_assert(our_format == 2);

/// What every packet that reads the tables asks for, in one statement: the time, and whose tables they are. Works with
/// every format that we know.
[[nodiscard]] Sql identity_query(const Clock& clock);
/// The columns for a statement that asks for more, and knows that the store has our format. They are to call the table
/// `m`, and to want its row with the id 1.
[[nodiscard]] Sql identity_columns(const Clock& clock);
inline constexpr std::size_t columns_of_identity = 5;

struct Identity {
    Instant now{};
    StoreId store_id{};
    bool read_only = false;  ///< The server, for all but administrators.
    std::int64_t format = our_format;
    bool was_used = false;  ///< It has had a lock. Of an older format nothing is known.

    [[nodiscard]] bool is_old() const { return format != our_format; }
};

/// What `identity_query` gave. Empty for a store that nobody has finished creating. `format_unsupported` for
/// one of a newer Holdfast.
[[nodiscard]] Result<std::optional<Identity>> identity_in(Answer& answer);
/// `used`: which column says that the store was used, if one does.
[[nodiscard]] Result<Identity> identity_in(const Row& row, std::optional<std::size_t> used);

/// The store that is there, if there is one.
[[nodiscard]] Result<std::optional<Identity>> identify(Connection& connection, const Clock& clock, Deadline deadline);

/// Creates the store. Others may do the same at this moment; all of them end with the same one, which has an older
/// format if the first of them knows no other.
[[nodiscard]] Result<Identity> create(Connection& connection, const Clock& clock, Deadline deadline);

/// Gives a store of an older format ours. Others may do the same at this moment, use the store, or have stopped half
/// way.
[[nodiscard]] Result<Identity> upgrade(Connection& connection, const Clock& clock, Deadline deadline);

}  // namespace holdfast::stores::mysql
