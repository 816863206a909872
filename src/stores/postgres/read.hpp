#pragma once

#include "holdfast/store.hpp"
#include "stores/common/batch.hpp"
#include "stores/postgres/statements.hpp"

#include <map>
#include <set>
#include <span>
#include <vector>

/// What Holdfast reads, checked: columns that disagree with the value beside them are `record_corrupt`.
namespace holdfast::stores::postgres {

/// Everything that was asked about some locks, at one moment of the store's clock.
struct View {
    Instant now{};
    std::map<LockName, Result<LockView>> locks{};
    std::set<LockName> present{};               ///< They have rows.
    std::set<LockName> bound{};                 ///< Their leases end with a session,
    std::set<LockName> orphaned{};              ///< and that session is gone.
    std::map<LockName, base::Bytes> records{};  ///< As they are stored.
    std::map<LockId, base::Bytes> places{};     ///< The same of the queue.
};

/// `contended` are locks that somebody asks for: only there it matters whether the holder's session is gone.
[[nodiscard]] Statement ask_view(const Statements& statements, const Clock& clock, std::span<const Wanted> wanted,
                                 const std::set<LockName>& contended = {});
[[nodiscard]] View read_view(const Rows& rows);

[[nodiscard]] Statement ask_list(const Statements& statements, const Clock& clock, const ListQuery& query);
[[nodiscard]] Result<std::vector<LockStatus>> read_list(const Rows& rows);

[[nodiscard]] Statement ask_history(const Statements& statements, const HistoryQuery& query);
[[nodiscard]] Result<std::vector<AuditEvent>> read_history(const Rows& rows, HistoryQuery::Which which);

[[nodiscard]] Statement ask_watch(const Statements& statements, const Clock& clock, const Watch& watch);
/// Whether what the watch waits for may have happened.
[[nodiscard]] bool read_watch(const Rows& rows, const Watch& watch);

/// The instant that a test's clock puts in place of the server's.
[[nodiscard]] std::optional<std::int64_t> judged(const Clock& clock);
[[nodiscard]] base::ByteView bytes_of(const std::string& text);

}  // namespace holdfast::stores::postgres
