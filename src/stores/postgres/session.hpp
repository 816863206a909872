#pragma once

#include "holdfast/lease.hpp"
#include "stores/postgres/connection.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace holdfast::stores::postgres {

/// For `?session=on`: a connection of its own that holds an advisory lock for every lease that was acquired through
/// this Store object. When the process ends, so does the connection, and the server releases the advisory locks; a
/// client that finds an advisory lock free may take over the lease at once. The row stays the authority: a lease
/// without its advisory lock is valid until another client takes it over.
class Keeper {
public:
    explicit Keeper(const Settings& settings) : settings_(settings) {}

    /// Refused with `store_unsafe` behind a pooler, which gives the session to other clients.
    [[nodiscard]] Result<void> connect(const base::CallBudget& budget);

    /// Tries to take the advisory lock of `name` for the lease `lock_id`. True if it was taken by this call.
    bool hold(const LockName& name, const LockId& lock_id, const base::CallBudget& budget);
    void let_go(const LockName& name, const LockId& lock_id);
    /// Takes the advisory locks again that were lost with a broken connection.
    void repair(const base::CallBudget& budget);

    /// A new descriptor of the connection. Absent if there is none, or it is in use.
    [[nodiscard]] std::optional<int> duplicate() const;

    /// The key of the advisory lock, if it is held for that lease.
    [[nodiscard]] std::optional<std::int64_t> key_for(const LockName& name, const LockId& lock_id) const;
    /// True if we hold the advisory lock and the lease is not ours: then the session of its holder is gone.
    [[nodiscard]] bool replaces(const LockName& name, const LockId& lock_id) const;

private:
    [[nodiscard]] Result<void> ensure_connected(const base::CallBudget& budget);
    [[nodiscard]] bool try_lock(const LockName& name, const base::CallBudget& budget);

    const Settings& settings_;
    mutable std::mutex mutex_;
    std::unique_ptr<Connection> connection_{};       ///< Guarded by mutex_.
    std::map<LockName, std::set<LockId>> wanted_{};  ///< Guarded by mutex_. For which leases.
    std::set<LockName> held_{};                      ///< Guarded by mutex_. What the connection holds.
};

/// The key of the advisory lock that goes with `name`. The server keeps those of its databases apart by itself.
[[nodiscard]] std::int64_t session_key(const Settings& settings, const LockName& name);

}  // namespace holdfast::stores::postgres
