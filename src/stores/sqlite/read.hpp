#pragma once

#include "stores/common/event_cursor.hpp"
#include "stores/sqlite/tables.hpp"

/// Calls that only look at all locks or events, inside a transaction of the caller where they read twice.
namespace holdfast::stores::sqlite {

inline constexpr std::string_view event_cursor_form = "sqlite";

[[nodiscard]] Result<std::vector<LockStatus>> read_list(Database& database, const Bonds& bonds, const ListQuery& query,
                                                        const Moment& moment);
[[nodiscard]] Result<std::vector<AuditEvent>> read_history(Database& database, const HistoryQuery& query);

/// Some events of all locks, in the order of their rows: only one process writes at a time, so that is the order of
/// commits, and no number is used again, because the newest event of a lock is never pruned.
[[nodiscard]] Result<EventPage> read_events(Database& database, const EventCursor& after, std::size_t limit,
                                            const StoreId& store_id);
[[nodiscard]] Result<EventCursor> read_end_of_events(Database& database, const StoreId& store_id);

}  // namespace holdfast::stores::sqlite
