#pragma once

#include "holdfast/audit.hpp"
#include "stores/file/codec.hpp"
#include "stores/file/folder.hpp"

#include <cstdint>
#include <vector>

/// The audit events of a lock that have left its record.
///
/// They are kept in parts of so many events. Each part is a file that is named after its first event: `audit.1`,
/// `audit.1025`… A part that was pruned is named after the first event that is left. So the record alone says which
/// files count and where an event is. Any other file is left over from a step that was not finished, and nobody
/// reads it.
namespace holdfast::stores::file {

/// The events of `saved` that `query` selects, oldest first; `audit_chain_broken` if the log is damaged.
///
/// Needs no guard: the events that a record counts never change. They can be gone, if they were pruned since the record
/// was read.
[[nodiscard]] Result<std::vector<AuditEvent>> read_events(const Folder& folder, const SavedLock& saved,
                                                          const HistoryQuery& query);

/// Moves the tail of `saved` to the log. The record on disk must have these events, so that they are durable already.
[[nodiscard]] Result<void> move_tail(const Folder& folder, SavedLock& saved);

/// Whether `prune` can read what it has to keep; `audit_chain_broken` if the log is damaged there.
[[nodiscard]] Result<void> can_prune(const Folder& folder, const SavedLock& saved, std::uint64_t through);

/// Takes the events up to `through` out of `saved`. The rest of their part gets a file of its own, and the old file
/// stays for the record that is still on disk.
[[nodiscard]] Result<void> prune(const Folder& folder, SavedLock& saved, std::uint64_t through);

/// Removes the files that do not count for a record with this `pruned_seq`, once that is on disk. A file that cannot be
/// removed is left to the next call.
void remove_unused_parts(const Folder& folder, std::uint64_t pruned_seq);

/// The end of a log whose record cannot be read: the events that follow each other without a gap, up to the last one
/// that can be read.
struct LogLeft {
    std::vector<AuditEvent> events{};
    std::uint64_t bytes_of_newest_part = 0;
};
[[nodiscard]] Result<LogLeft> read_what_is_left(const Folder& folder, const LockName& name);

}  // namespace holdfast::stores::file
