#pragma once

#include "holdfast/lease.hpp"
#include "stores/mysql/server_facts.hpp"

#include <optional>

namespace holdfast::stores::mysql {

inline constexpr std::int64_t our_format = 1;
/// Of a row of `holdfast_meta`: a store of our format, on a server that may be written to; a condition is to follow.
/// As text the last is 0 or OFF, which depends on the version.
inline constexpr Sql::Text is_store = "id = 1 AND format = 1 AND CONCAT(@@global.read_only) IN ('0', 'OFF') AND ";
static_assert(our_format == 1);

/// What every packet that reads the tables asks for, in one statement: the time, and whose tables they are.
[[nodiscard]] Sql identity_query(const Clock& clock);
/// Its columns, for statements that ask for more. They are to call the table `m`, and to want its row with the id 1.
[[nodiscard]] Sql identity_columns(const Clock& clock);
inline constexpr std::size_t columns_of_identity = 4;

struct Identity {
    Instant now{};
    StoreId store_id{};
    bool read_only = false;  ///< The server, for all but administrators.
};

/// What `identity_query` gave. Empty for a store that nobody has finished creating. `format_unsupported` for
/// one of a newer Holdfast.
[[nodiscard]] Result<std::optional<Identity>> identity_in(Answer& answer);
[[nodiscard]] Result<Identity> identity_in(const Row& row);

/// The store that is there, if there is one.
[[nodiscard]] Result<std::optional<Identity>> identify(Connection& connection, const Clock& clock, Deadline deadline);

/// Creates the store. Others may do the same at this moment; all of them end with the same one.
[[nodiscard]] Result<Identity> create(Connection& connection, const Clock& clock, Deadline deadline);

}  // namespace holdfast::stores::mysql
