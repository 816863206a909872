#pragma once

#include "holdfast/lease.hpp"
#include "json/value.hpp"

#include <optional>
#include <string_view>
#include <vector>

/// The value of HOLDFAST_LEASES: every lease that a command works under.
namespace holdfast::json {

struct ListedLease {
    std::optional<StoreId> store_id{};  ///< Absent where nobody said on which store it is.
    LockName name;
    std::optional<FencingToken> token{};
    Credentials as;
};

/// `[{"store_id","name","token","lock_id","lease"}]`. Holds secrets.
[[nodiscard]] Value lease_list(const std::vector<ListedLease>& leases);

/// `[{"name","token","lock_id"}]`: what everybody may see of them.
[[nodiscard]] Value public_lease_list(const std::vector<ListedLease>& leases);

/// Absent unless `text` is such a list, whole and well-formed. Fields that are not known are passed over.
[[nodiscard]] std::optional<std::vector<ListedLease>> parse_lease_list(std::string_view text);

}  // namespace holdfast::json
