#pragma once

#include "holdfast/lease.hpp"
#include "json/value.hpp"

#include <string_view>
#include <vector>

/// Fences of SQL databases.
namespace holdfast::json {

[[nodiscard]] Object seal(std::string_view name, const StoreId& store_id, FencingToken token, const LockId& lock_id);
/// Without a lock: it is not protected any more.
[[nodiscard]] Object protected_table(std::string_view table, std::string_view lock, bool covered = true);
[[nodiscard]] Object fence_status(const std::vector<Value>& seals, const std::vector<Value>& tables);
/// What `init --fence` says.
[[nodiscard]] Object fence_ready(std::string_view database);

}  // namespace holdfast::json
