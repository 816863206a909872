#pragma once

#include "holdfast/store.hpp"
#include "kernel/record.hpp"

#include <string>
#include <vector>

/// What a query selects.
namespace holdfast::stores {

[[nodiscard]] bool is_selected(const ListQuery& query, const kernel::Record& record);

/// The end of all names, or keys, that begin with `prefix`: greater than they are, and not greater than any other that
/// is greater. After all names if `prefix` is empty.
[[nodiscard]] std::string end_of_prefix(std::string prefix);

/// Of several locks: by time, then by name and number.
void sort_by_time(std::vector<AuditEvent>& events);

/// Removes what is beyond the query's limit from `events`, which are in the order of the query.
void cut_to_limit(std::vector<AuditEvent>& events, const HistoryQuery& query);

}  // namespace holdfast::stores
