#include "stores/postgres/session.hpp"

#include "stores/postgres/read.hpp"
#include "values/sha256.hpp"

#include <fcntl.h>

namespace holdfast::stores::postgres {

std::int64_t session_key(const Settings& settings, const LockName& name) {
    const std::string what = "holdfast session " + settings.schema + '\0' + name.text();
    const Digest digest = sha256(bytes_of(what));
    std::uint64_t key = 0;
    for (std::size_t i = 0; i < sizeof key; ++i) key = key << 8 | digest[i];
    return static_cast<std::int64_t>(key);
}

Result<void> Keeper::connect(const base::CallBudget& budget) {
    const std::scoped_lock lock(mutex_);
    return ensure_connected(budget);
}

Result<void> Keeper::ensure_connected(const base::CallBudget& budget) {
    if (connection_ && connection_->is_alive()) return {};
    connection_.reset();
    held_.clear();
    auto opened = postgres::connect(settings_, budget);
    if (!opened) return std::unexpected(opened.error());
    if ((*opened)->is_pooled())
        return fail(Errc::store_unsafe, settings_.url +
                                            " is behind a connection pooler, where no session stays ours; use a direct "
                                            "connection, or leave session=on out");
    if (const Trip trip = (*opened)->run(notice_dead_peers(), budget); trip.fault)
        return std::unexpected(error_of(*trip.fault, "use " + settings_.url));
    connection_ = std::move(*opened);
    return {};
}

bool Keeper::try_lock(const LockName& name, const base::CallBudget& budget) {
    if (held_.contains(name)) return true;
    Statement ask("SELECT pg_try_advisory_lock($1)");
    const Trip trip = connection_->run(ask.bind(session_key(settings_, name)), budget);
    if (trip.fault || !trip.answers.front().flag(0, 0)) return false;
    held_.insert(name);
    return true;
}

bool Keeper::hold(const LockName& name, const LockId& lock_id, const base::CallBudget& budget) {
    const std::scoped_lock lock(mutex_);
    // Without the advisory lock the lease ends with its ttl, which is no failure.
    if (!ensure_connected(budget) || !try_lock(name, budget)) return false;
    return wanted_[name].insert(lock_id).second;
}

void Keeper::let_go(const LockName& name, const LockId& lock_id) {
    const std::scoped_lock lock(mutex_);
    const auto found = wanted_.find(name);
    if (found == wanted_.end() || found->second.erase(lock_id) == 0 || !found->second.empty()) return;
    wanted_.erase(found);
    if (held_.erase(name) == 0 || !connection_) return;
    Statement unlock("SELECT pg_advisory_unlock($1)");
    connection_->send_only(unlock.bind(session_key(settings_, name)));
}

void Keeper::repair(const base::CallBudget& budget) {
    const std::scoped_lock lock(mutex_);
    if (wanted_.empty() || !ensure_connected(budget)) return;
    for (const auto& [name, leases] : wanted_)
        if (!try_lock(name, budget) && !connection_->is_usable()) return;
}

std::optional<int> Keeper::duplicate() const {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || !connection_) return std::nullopt;
    const int copy = fcntl(connection_->socket(), F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? std::nullopt : std::optional(copy);
}

std::optional<std::int64_t> Keeper::key_for(const LockName& name, const LockId& lock_id) const {
    const std::scoped_lock lock(mutex_);
    const auto found = wanted_.find(name);
    if (found == wanted_.end() || !held_.contains(name) || !found->second.contains(lock_id)) return std::nullopt;
    return session_key(settings_, name);
}

bool Keeper::replaces(const LockName& name, const LockId& lock_id) const {
    const std::scoped_lock lock(mutex_);
    const auto found = wanted_.find(name);
    return held_.contains(name) && found != wanted_.end() && !found->second.contains(lock_id);
}

}  // namespace holdfast::stores::postgres
