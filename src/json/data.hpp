#pragma once

#include "json/value.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

/// The document of `holdfast data sync`.
namespace holdfast::json {

struct SyncedTable {
    std::string_view name{};
    std::string_view strategy{};
    std::int64_t rows = 0;
    std::int64_t inserted = 0;
    std::int64_t updated = 0;
    std::int64_t deleted = 0;
    std::int64_t unchanged = 0;
};

/// `{"dry_run":false,"tables":[…]}`
[[nodiscard]] Object synced(bool dry_run, const std::vector<SyncedTable>& tables);

}  // namespace holdfast::json
