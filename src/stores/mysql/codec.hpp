#pragma once

#include "stores/common/batch.hpp"
#include "stores/common/damage.hpp"
#include "stores/common/sealed.hpp"
#include "stores/common/server_clock.hpp"
#include "stores/mysql/connection.hpp"

#include <optional>
#include <set>
#include <span>

namespace holdfast::stores::mysql {

/// The time, and the tolerance, by which stored times are judged.
struct Judging {
    Instant now{};
    std::chrono::milliseconds tolerance = slewing;
};

/// `SELECT` and what `read_lock` reads; `FROM` is to follow. The table is called `l`.
inline constexpr Sql::Text select_lock =
    "SELECT l.name, l.token, l.lock_id, l.seq, l.session, l.data, "
    "CASE WHEN l.seq = 0 THEN EXISTS (SELECT 1 FROM holdfast_audit a WHERE a.name = l.name) ELSE 0 END";
inline constexpr std::size_t columns_of_lock = 7;

/// The record; empty for a row that was inserted for a lock that was never used.
[[nodiscard]] Result<std::optional<Unsealed<kernel::Record>>> read_lock(const Row& row, const LockName& name,
                                                                        const Judging& judging);

/// What is there of a lock that has a row and cannot be read, and how its answer is understood. `tickets` are the
/// places in its queue, as they are stored.
[[nodiscard]] Sql select_traces(const LockName& name);
[[nodiscard]] kernel::Damage read_damage(Answer& answer, const LockName& name, std::vector<base::Bytes> tickets,
                                         const Judging& judging);

/// The names as a list in parentheses.
[[nodiscard]] Sql list_of(std::span<const LockName> names);

/// Whether a stored lease depends on a session.
[[nodiscard]] inline bool session_in(const Row& row) { return row.number(4) != 0; }

/// From so many changes on, prepared statements are worth one round trip more for each statement.
inline constexpr std::size_t changes_to_bind = 4;

/// The changes to write.
struct Writing {
    std::span<const Change> changes;
    Instant now{};
    const std::set<LockName>& sessions;  ///< The locks whose leases depend on a session.
    const std::set<LockName>& fresh;     ///< Locks that had no row.
};

/// Statements, each with its `;`, that write records and events. If there are fresh locks, the first statement adds
/// their rows, and fails if another client was faster. Empty if there is nothing to write.
[[nodiscard]] Sql statements_for(const Writing& writing);

/// The same with bound values.
struct BoundStatement {
    const Sql& text;
    BoundRows rows{};
    std::uint64_t expected_count = 0;  ///< Of rows, if everything is as predicted. Unused for locks that were read.
};
[[nodiscard]] std::vector<BoundStatement> bound_statements_for(const Writing& writing);

/// A lock as this process last wrote it.
struct KnownLock {
    kernel::Record record;  ///< Blank for a lock that was never used, and has no row.
    Instant written_at{};   ///< The stored value is computed from it and the record.
};

/// What changes that were decided before anything was read rely on.
struct Prediction {
    std::vector<KnownLock> before{};  ///< For each change.
    StoreId store_id;
    std::optional<Instant> judged{};  ///< The time, instead of the server's clock.
    Window window{};                  ///< The time is in here.
};

/// Statements, each with its `;`, that write records and events, and fail unless everything is as predicted: the rows
/// of known locks, which are locked first and without waiting, the store, the clock, empty queues, and no history of
/// new locks.
[[nodiscard]] Sql statements_for(const Writing& writing, const Prediction& prediction);
/// The same with bound values. The first one fails if a row is there that is not as predicted; a row that is gone shows
/// in the count.
[[nodiscard]] std::vector<BoundStatement> bound_statements_for(const Writing& writing, const Prediction& prediction);

/// Statements, each with its `;`, that remove pruned events. To be run after the statements that write events.
[[nodiscard]] Sql cut_events(std::span<const Change> changes);

/// The event in the columns `name, seq, token, data`.
[[nodiscard]] Result<AuditEvent> read_event(const Row& row);

}  // namespace holdfast::stores::mysql
