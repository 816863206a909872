#pragma once

#include "stores/common/batch.hpp"
#include "stores/mysql/server.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>

namespace holdfast::stores::mysql {

/// What a batch knows of the sessions of its locks.
struct SessionView {
    /// Locks that no session held a moment ago; ours holds them now. A lease of one that depends on a session has lost
    /// it.
    std::set<LockName> gained{};
    /// Locks that our session holds for leases that were acquired through it.
    std::set<LockName> kept{};
    /// Locks that our session held and has lost. Their leases continue as leases without a session.
    std::set<LockName> lost{};

    [[nodiscard]] bool has(const LockName& name) const { return gained.contains(name) || kept.contains(name); }
};

/// Leases that end with their connection (`?session=on`).
///
/// One connection holds a GET_LOCK for each lease that was taken through this store. When it breaks, the server
/// releases them, and a client that gets one may take over the lease at once. The row stays the authority: a session
/// only ever shortens a lease, and a holder that lost its session keeps its lease until another client takes it over.
class SessionLocks {
public:
    explicit SessionLocks(Server& server) : server_(server) {}
    SessionLocks(const SessionLocks&) = delete;
    SessionLocks& operator=(const SessionLocks&) = delete;
    ~SessionLocks() { disconnect(); }

    /// Refused with `store_unsafe` behind a proxy that gives each statement another connection: then our connection is
    /// not one session of the server.
    [[nodiscard]] Result<void> check(Deadline deadline);

    /// To be called before a batch: tries, without waiting, to take the locks that the batch may acquire, and checks
    /// that the session still holds the others.
    [[nodiscard]] Result<SessionView> prepare(std::span<const Wanted> wanted, Deadline deadline);

    /// To be called after it, without replies if it changed nothing. Releases the locks of leases that were refused or
    /// have ended.
    void settle(std::span<const Request> requests, std::span<const Reply> replies, const SessionView& view,
                Deadline deadline);
    /// The same for an unknown outcome: a lease that may exist must not look abandoned.
    void settle_unknown(std::span<const Request> requests, const SessionView& view);

    /// A new descriptor of the connection. Absent if there is none, or it is in use.
    [[nodiscard]] std::optional<int> duplicate() const;

private:
    using Names = std::vector<LockName>;

    [[nodiscard]] Result<void> connect(Deadline deadline);
    /// The connection never goes back to the pool, since the server would keep holding the locks for it.
    void disconnect();
    /// The effect of a reply on the lease that depends on the lock's session.
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
    mutable std::mutex mutex_;
    std::optional<Server::Borrowed> connection_{};  ///< Guarded by mutex_, also while it is used.
    std::map<LockName, LockId> held_{};             ///< Guarded by mutex_. The leases that depend on it.
    std::set<LockName> in_doubt_{};                 ///< Guarded by mutex_. Gained for a batch that is under way.
};

}  // namespace holdfast::stores::mysql
