#pragma once

#include "holdfast/store.hpp"
#include "kernel/record.hpp"

#include <vector>

/// What a query selects, for stores that read more than it asks for.
namespace holdfast::stores {

[[nodiscard]] bool is_selected(const ListQuery& query, const kernel::Record& record);

/// Of several locks: by time, then by name and number.
void sort_by_time(std::vector<AuditEvent>& events);

/// Removes what is beyond the query's limit from `events`, which are in the order of the query.
void cut_to_limit(std::vector<AuditEvent>& events, const HistoryQuery& query);

}  // namespace holdfast::stores
