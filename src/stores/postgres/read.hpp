#pragma once

#include "holdfast/store.hpp"
#include "stores/common/batch.hpp"
#include "stores/common/damage.hpp"
#include "stores/common/wake_hub.hpp"
#include "stores/postgres/statements.hpp"

#include <map>
#include <set>
#include <span>
#include <vector>

/// Reads and checks rows: a column that disagrees with the value in the same row is `record_corrupt`.
namespace holdfast::stores::postgres {

/// Some locks with their queues, at one moment of the store's clock.
struct View {
    Instant now{};
    std::map<LockName, Result<LockView>> locks{};
    std::set<LockName> present{};               ///< Locks that have rows.
    std::set<LockName> bound{};                 ///< Locks whose leases end with a session,
    std::set<LockName> orphaned{};              ///< and those of them whose session is gone.
    std::map<LockName, base::Bytes> records{};  ///< As they are stored.
    std::map<LockId, base::Bytes> places{};     ///< The same of the queue.
};

/// `contended` are locks whose lease a request may take over: only for these it matters whether the holder's session is
/// gone.
[[nodiscard]] Statement ask_view(const Statements& statements, const Clock& clock, std::span<const Wanted> wanted,
                                 const std::set<LockName>& contended = {});
[[nodiscard]] View read_view(const Rows& rows);

/// Of a lock that cannot be read.
[[nodiscard]] Statement ask_traces(const Statements& statements, const LockName& name);
[[nodiscard]] kernel::Damage read_damage(const Rows& rows, const LockName& name, const View& view);

[[nodiscard]] Statement ask_list(const Statements& statements, const Clock& clock, const ListQuery& query);
[[nodiscard]] Result<std::vector<LockStatus>> read_list(const Rows& rows, const ListQuery& query);

[[nodiscard]] Statement ask_history(const Statements& statements, const HistoryQuery& query);
[[nodiscard]] Result<std::vector<AuditEvent>> read_history(const Rows& rows, HistoryQuery::Which which);

/// The present state of what a watch waits for.
struct Position {
    std::optional<std::uint64_t> seq{};  ///< Absent for a lock that has no row.
    bool is_open = false;                ///< Anybody may take the lock.
    bool is_queued = false;              ///< The watch's ticket is in the queue, and lives.
    std::uint64_t ahead = 0;             ///< Live tickets before it, up to a few.
    bool has_lease = false;              ///< The lock has the watch's lease.
    std::optional<std::chrono::milliseconds> lease_left{};

    /// Whether what `watch` waits for may have happened.
    [[nodiscard]] bool fires(const Watch& watch) const;
};
[[nodiscard]] Statement ask_positions(const Statements& statements, const Clock& clock,
                                      std::span<const HubWatch> watches);
/// One for each watch, in their order.
[[nodiscard]] std::vector<Position> read_positions(const Rows& rows);

/// The instant that a test's clock puts in place of the server's.
[[nodiscard]] std::optional<std::int64_t> judged(const Clock& clock);
[[nodiscard]] base::ByteView bytes_of(const std::string& text);

}  // namespace holdfast::stores::postgres
