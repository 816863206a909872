#pragma once

#include "stores/common/batch.hpp"
#include "stores/common/sealed.hpp"
#include "stores/common/server_clock.hpp"
#include "stores/mysql/connection.hpp"
#include "stores/mysql/known_lock.hpp"
#include "stores/mysql/rows.hpp"

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

/// From so many on it is worth a round trip more for each statement that the server need not parse them.
inline constexpr std::size_t changes_to_bind = 4;

/// What is to be written.
struct Writing {
    std::span<const Change> changes;
    Instant now{};
    const std::set<LockName>& sessions;  ///< The locks whose leases depend on one.
    const std::set<LockName>& fresh;     ///< Locks that had no row.
};

/// Statements, each with its `;`, that write records and events. If there are fresh locks, the first one adds their
/// rows, and fails if somebody else was faster. Nothing for changes without any.
[[nodiscard]] Sql statements_for(const Writing& writing);

/// The same, with values that are bound.
struct BoundStatement {
    const Sql& text;
    BoundRows rows;
};
[[nodiscard]] std::vector<BoundStatement> bound_statements_for(const Writing& writing);

/// What has to be so when all rows are locked.
struct Expected {
    StoreId store_id;
    Window window{};                  ///< In which the time has to be.
    std::optional<Instant> judged{};  ///< The time, if the server's clock does not say it.
};
/// The same for locks that nobody has read, which fail (`Failure::out_of_range`) if one of them is not there exactly as
/// in `before`, which has one for each change; if one that was never used has a history; if somebody waits for one; or
/// if something else is not as expected. They wait for nobody. For a server that takes rows, and changes with events.
[[nodiscard]] std::vector<BoundStatement> bound_statements_for(const Writing& writing,
                                                               std::span<const KnownLock> before,
                                                               const Expected& expected);

/// Statements, each with its `;`, that remove the events that are to go. To be run behind those that write the others.
[[nodiscard]] Sql cut_events(std::span<const Change> changes);

/// A statement, with its `;`, that fails (`Failure::out_of_range`) if a fresh lock has a history beside what was
/// written just now: it was used, and has lost its record. Nothing without fresh locks.
[[nodiscard]] Sql expect_no_history(const Writing& writing);

/// The event in the columns `name, seq, token, data`.
[[nodiscard]] Result<AuditEvent> read_event(const Row& row);

}  // namespace holdfast::stores::mysql
