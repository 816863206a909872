#pragma once

#include "holdfast/audit.hpp"
#include "stores/redis/remote.hpp"

namespace holdfast::stores::redis {

[[nodiscard]] Result<std::vector<AuditEvent>> read_history(Remote& remote, const HistoryQuery& query,
                                                           Deadline deadline);

}  // namespace holdfast::stores::redis
