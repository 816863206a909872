#pragma once

#include "holdfast/audit.hpp"
#include "holdfast/store.hpp"
#include "json/parse.hpp"
#include "json/value.hpp"

#include <string>
#include <vector>

/// The audit log. An event is read as it was written, hashes included.
namespace holdfast::json {

[[nodiscard]] Object event(const AuditEvent& event);

/// `{"events":[…]}`.
[[nodiscard]] Object events(const std::vector<AuditEvent>& events);

/// Refused with `usage` and the path of the field that does not fit.
[[nodiscard]] Result<AuditEvent> read_event(const Node& node, const std::string& where = "");
[[nodiscard]] Result<std::vector<AuditEvent>> read_events(const Node& node);

/// Some of the events of all locks: `{"events":[…],"cursor","is_last","unsettled_since"}`.
[[nodiscard]] Object event_page(const EventPage& page);
[[nodiscard]] Result<EventPage> read_event_page(const Node& node);

/// What `history --verify` says: how many events of how many locks are intact.
[[nodiscard]] Object verified(std::uint64_t events, std::uint64_t locks);

/// What `prune` says: how many events were removed, or would be, and of how many locks.
[[nodiscard]] Object pruned(std::uint64_t events, std::uint64_t locks, bool dry_run);

}  // namespace holdfast::json
