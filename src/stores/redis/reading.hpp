#pragma once

#include "holdfast/store.hpp"
#include "stores/redis/remote.hpp"

namespace holdfast::stores::redis {

[[nodiscard]] Result<LockStatus> read_status(Remote& remote, const LockName& name, Deadline deadline);
[[nodiscard]] Result<std::vector<LockStatus>> read_list(Remote& remote, const ListQuery& query, Deadline deadline);
[[nodiscard]] Result<std::vector<AuditEvent>> read_history(Remote& remote, const HistoryQuery& query,
                                                           Deadline deadline);

}  // namespace holdfast::stores::redis
