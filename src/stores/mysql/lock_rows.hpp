#pragma once

#include "stores/batch/batch.hpp"
#include "stores/batch/sealed.hpp"
#include "stores/mysql/connection.hpp"

#include <optional>
#include <set>
#include <span>

namespace holdfast::stores::mysql {

/// By which clock, and how strictly, stored times are judged.
struct Judging {
    Instant now{};
    std::chrono::milliseconds tolerance = slewing;
};

/// `SELECT` and what `read_lock` reads; `FROM` is to follow. The table is called `l`.
inline constexpr Sql::Text select_lock =
    "SELECT l.name, l.token, l.lock_id, l.seq, l.session, l.data, "
    "CASE WHEN l.seq = 0 THEN EXISTS (SELECT 1 FROM holdfast_audit a WHERE a.name = l.name) ELSE 0 END";
inline constexpr std::size_t columns_of_lock = 7;
/// The same without the question for a history, which makes it cost half as much again. What is doubtful then cannot be
/// read with `read_lock`.
inline constexpr Sql::Text select_lock_quickly = "SELECT l.name, l.token, l.lock_id, l.seq, l.session, l.data";
/// Whether it depends on the lock's history what the row means.
[[nodiscard]] inline bool is_doubtful(const Row& row) { return row.number(3) == 0; }

/// A record, or nothing for a row that was made ready for a lock that was never used.
[[nodiscard]] Result<std::optional<Unsealed<kernel::Record>>> read_lock(const Row& row, const LockName& name,
                                                                        const Judging& judging);

/// The names as a list in parentheses.
[[nodiscard]] Sql list_of(std::span<const LockName> names);

/// Whether a stored lease depends on a session.
[[nodiscard]] inline bool session_in(const Row& row) { return row.number(4) != 0; }

/// Statements, each with its `;`, that write records and events. Nothing for changes without any. The leases of the
/// locks in `sessions` depend on one. The locks in `fresh` had no row: one statement adds theirs, and fails if somebody
/// else was faster, or if one of them has a history (`Failure::not_null`).
[[nodiscard]] Sql add_locks(std::span<const Change> changes, Instant now, const std::set<LockName>& sessions,
                            const std::set<LockName>& fresh);
[[nodiscard]] Sql put_locks(std::span<const Change> changes, Instant now, const std::set<LockName>& sessions,
                            const std::set<LockName>& fresh);
[[nodiscard]] Sql put_events(std::span<const Change> changes);

/// The event in the columns `name, seq, token, data`.
[[nodiscard]] Result<AuditEvent> read_event(const Row& row);

}  // namespace holdfast::stores::mysql
