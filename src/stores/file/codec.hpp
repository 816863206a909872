#pragma once

#include "base/frame.hpp"
#include "kernel/record.hpp"

#include <optional>
#include <span>
#include <vector>

namespace holdfast::stores::file {

using base::Bytes;
using base::ByteView;

/// The content of one lock's `record` file.
///
/// The newest audit events are inside it, so that an event and its change are one write. Older ones have been moved to
/// the audit log, see audit_log.hpp. Of its newest file the first `audit_bytes` bytes belong to this record: they never
/// change again. Bytes after them are left over from a move that was not finished.
struct SavedLock {
    kernel::Record record;
    kernel::ClockMark saved_under{};
    std::uint64_t audit_bytes = 0;  ///< 0 if no event is in the log.
    std::vector<AuditEvent> tail{};
};

/// A batch can leave some hundred events in a tail; a larger file was not written by Holdfast.
inline constexpr std::size_t longest_record = std::size_t{64} << 20;

[[nodiscard]] Bytes to_file(const SavedLock& saved);

/// Empty unless the bytes are exactly one valid record whose tail leads to it.
[[nodiscard]] std::optional<SavedLock> saved_lock_in(ByteView file);

/// Events as a file of the audit log has them.
[[nodiscard]] Bytes to_audit(std::span<const AuditEvent> events);

/// The events of `name` from number `first` on; empty if anything does not fit.
[[nodiscard]] std::optional<std::vector<AuditEvent>> events_in(ByteView audit, const LockName& name,
                                                               std::uint64_t first);

/// The same up to the first that does not fit, and how many bytes these take.
struct ReadableEvents {
    std::vector<AuditEvent> events{};
    std::size_t size = 0;
};
[[nodiscard]] ReadableEvents readable_events_in(ByteView audit, const LockName& name, std::uint64_t first);

}  // namespace holdfast::stores::file
