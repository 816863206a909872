#pragma once

#include "stores/common/batch.hpp"
#include "stores/mysql/server.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>

namespace holdfast::stores::mysql {

/// What a batch knows of the sessions behind its locks.
struct SessionView {
    /// Nobody's session held these a moment ago; ours does now. A lease in them that depends on a session has lost it.
    std::set<LockName> gained{};
    /// Ours holds these for leases that were taken through it.
    std::set<LockName> kept{};
    /// Ours held these, and has lost them. Their leases go on as leases without a session.
    std::set<LockName> lost{};

    [[nodiscard]] bool has(const LockName& name) const { return gained.contains(name) || kept.contains(name); }
};

/// Leases that end with their connection (`?session=on`).
///
/// One connection holds a GET_LOCK for each lease that was taken through this store. When it breaks, the server
/// frees them, and whoever gets one may take over the lease at once. The row stays the authority: a session only ever
/// shortens a lease, and who lost its session keeps its lease until somebody takes it.
class SessionLocks {
public:
    explicit SessionLocks(Server& server) : server_(server) {}
    SessionLocks(const SessionLocks&) = delete;
    SessionLocks& operator=(const SessionLocks&) = delete;
    ~SessionLocks() { disconnect(); }

    /// `store_unsafe` where a connection of ours is not one session of the server: behind a proxy that hands out
    /// its connections by the statement.
    [[nodiscard]] Result<void> check(Deadline deadline);

    /// To be called before a batch: tries to get the locks that it may acquire, without waiting, and makes sure of
    /// those that are kept.
    [[nodiscard]] Result<SessionView> prepare(std::span<const Wanted> wanted, Deadline deadline);

    /// To be called after it, without replies if it changed nothing. Locks of leases that were refused or have ended
    /// are let go.
    void settle(std::span<const Request> requests, std::span<const Reply> replies, const SessionView& view,
                Deadline deadline);
    /// Or this, if nobody knows: a lease that may exist must not look abandoned.
    void settle_unknown(std::span<const Request> requests, const SessionView& view);

private:
    using Names = std::vector<LockName>;

    [[nodiscard]] Result<void> connect(Deadline deadline);
    /// Never back to the pool: the server would go on holding the locks for a connection that does other things.
    void disconnect();
    /// What a reply says about the lease that depends on the lock's session.
    void learn(const Request& request, const Reply& reply, const SessionView& view);
    /// Those that our session holds from now on.
    [[nodiscard]] Result<std::set<LockName>> get(const Names& names, Deadline deadline);
    /// Those that it still holds.
    [[nodiscard]] Result<std::set<LockName>> confirm(const Names& names, Deadline deadline);
    void release(const Names& names, Deadline deadline);
    /// One number for each name; absent where the server says NULL.
    [[nodiscard]] Result<std::vector<std::optional<std::int64_t>>> ask(Sql::Text before, const Names& names,
                                                                       Sql::Text behind, Deadline deadline);
    [[nodiscard]] std::string session_name(const LockName& name) const;

    Server& server_;
    std::mutex mutex_;
    std::optional<Server::Borrowed> connection_{};  ///< Guarded by mutex_, also while it is used.
    std::map<LockName, LockId> held_{};             ///< Guarded by mutex_. The leases that depend on it.
    std::set<LockName> in_doubt_{};                 ///< Guarded by mutex_. Gained for a batch that is under way.
};

}  // namespace holdfast::stores::mysql
