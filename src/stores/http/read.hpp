#pragma once

#include "holdfast/store.hpp"
#include "stores/http/server.hpp"

#include <vector>

/// Reading through a daemon. Changes nothing.
namespace holdfast::stores::http {

[[nodiscard]] Result<LockStatus> read_status(Server& server, const LockName& name, const base::CallBudget& budget);

/// Page by page, so that no answer is larger than a daemon gives.
[[nodiscard]] Result<std::vector<LockStatus>> read_list(Server& server, const ListQuery& query,
                                                        base::CallBudget& budget);
[[nodiscard]] Result<std::vector<AuditEvent>> read_history(Server& server, const HistoryQuery& query,
                                                           base::CallBudget& budget);

[[nodiscard]] Result<EventPage> read_events(Server& server, const EventCursor& after, std::size_t limit,
                                            const base::CallBudget& budget);
[[nodiscard]] Result<EventCursor> read_end_of_events(Server& server, const base::CallBudget& budget);

}  // namespace holdfast::stores::http
