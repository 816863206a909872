#pragma once

#include "holdfast/store.hpp"
#include "stores/common/bonds.hpp"
#include "stores/file/folder.hpp"

#include <optional>
#include <vector>

/// Calls that only look, at the folder of all locks.
namespace holdfast::stores::file {

/// `locks` is empty as long as there is no store.
[[nodiscard]] Result<LockStatus> read_status(const std::optional<Folder>& locks, const Bonds& bonds,
                                             const LockName& name, const Clock& clock);
[[nodiscard]] Result<std::vector<LockStatus>> read_list(const Folder& locks, const Bonds& bonds, const ListQuery& query,
                                                        const Clock& clock, Deadline deadline);
[[nodiscard]] Result<std::vector<AuditEvent>> read_history(const Folder& locks, const HistoryQuery& query,
                                                           const Clock& clock, Deadline deadline);

}  // namespace holdfast::stores::file
