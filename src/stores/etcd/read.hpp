#pragma once

#include "holdfast/store.hpp"
#include "stores/etcd/remote.hpp"

/// Looking without changing anything.
namespace holdfast::stores::etcd {

[[nodiscard]] Result<LockStatus> inspect(Remote& remote, const LockName& name, base::CallBudget& budget);
/// As people and holders see it.
[[nodiscard]] LockStatus status_at(const LockView& lock, const Moment& moment);
[[nodiscard]] Result<std::vector<LockStatus>> list(Remote& remote, const ListQuery& query, base::CallBudget& budget);
[[nodiscard]] Result<std::vector<AuditEvent>> history(Remote& remote, const HistoryQuery& query,
                                                      base::CallBudget& budget);

/// In passes over the locks that have changed since the last pass: a pass has the events of the revisions from one to
/// another, so that each comes once, and those of a lock in their order. etcd reads the records of all locks for each
/// page, and of the log only what is new.
[[nodiscard]] Result<EventPage> events(Remote& remote, const EventCursor& after, std::size_t limit,
                                       base::CallBudget& budget);
[[nodiscard]] Result<EventCursor> end_of_events(Remote& remote, base::CallBudget& budget);

}  // namespace holdfast::stores::etcd
