#pragma once

#include "holdfast/lease.hpp"
#include "stores/postgres/connection.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace holdfast::stores::postgres {

/// For `?session=on`: a connection of its own that holds an advisory lock for every lease that was acquired through
/// this Store object. When the process is gone, so is the connection, and the server lets go; whoever finds the
/// advisory lock free may take the lease at once. The row stays the authority: a lease without its advisory lock is
/// still a lease until somebody takes it.
class Keeper {
public:
    explicit Keeper(const Settings& settings) : settings_(settings) {}

    /// Refused with `store_unsafe` behind a pooler: the session there belongs to whoever comes next.
    [[nodiscard]] Result<void> connect(const CallBudget& budget);

    /// Tries to hold the advisory lock of `name` for the lease `lock_id`. False if it is not held, or was already.
    bool hold(const LockName& name, const LockId& lock_id, const CallBudget& budget);
    void let_go(const LockName& name, const LockId& lock_id);
    /// Takes again what was lost with a connection that broke.
    void repair(const CallBudget& budget);

    /// Of the advisory lock, if it is held for that lease.
    [[nodiscard]] std::optional<std::int64_t> key_for(const LockName& name, const LockId& lock_id) const;
    /// We hold the advisory lock, so the session of that lease, which is not one of ours, cannot.
    [[nodiscard]] bool replaces(const LockName& name, const LockId& lock_id) const;

private:
    [[nodiscard]] Result<void> ensure_connected(const CallBudget& budget);
    [[nodiscard]] bool try_lock(const LockName& name, const CallBudget& budget);

    const Settings& settings_;
    mutable std::mutex mutex_;
    std::unique_ptr<Connection> connection_{};       ///< Guarded by mutex_.
    std::map<LockName, std::set<LockId>> wanted_{};  ///< Guarded by mutex_. For which leases.
    std::set<LockName> held_{};                      ///< Guarded by mutex_. What the connection holds.
};

/// The key of the advisory lock that goes with `name`. The server keeps those of its databases apart by itself.
[[nodiscard]] std::int64_t session_key(const Settings& settings, const LockName& name);

}  // namespace holdfast::stores::postgres
