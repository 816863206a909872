#pragma once

#include "guards/sql/fence.hpp"
#include "holdfast/lease.hpp"
#include "sql/session.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Tables of PostgreSQL that refuse every session without the current token, by triggers. A session carries its leases
/// in the setting `holdfast.leases`: public values, so this stops mistakes and not malice.
namespace holdfast::guards::fence {

/// A table with the trigger, or a partition of one without it.
struct ProtectedTable {
    std::string table{};  ///< With its schema, quoted where that is needed.
    std::string lock{};
    bool covered = true;  ///< False: a partition that was attached later. Nothing is checked there.
};

/// From now on only sessions that carry the newest lease of `lock` write to `table` and all of its partitions.
/// Repeating it is harmless, and covers new partitions. Refused with `usage` for what is no table.
[[nodiscard]] Result<void> protect(sql::Session& session, Fence& fence, std::string_view table, const LockName& lock,
                                   Deadline deadline);

/// Everybody may write again. `lock_not_held` if the table is not protected.
[[nodiscard]] Result<void> unprotect(sql::Session& session, std::string_view table, Deadline deadline);

[[nodiscard]] Result<std::vector<ProtectedTable>> protected_tables(sql::Session& session, Deadline deadline);

}  // namespace holdfast::guards::fence
