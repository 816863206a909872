#include "stores/etcd/foreseen.hpp"

#include <chrono>

namespace holdfast::stores::etcd {
namespace {

constexpr std::size_t most_waiters = 1024;
/// Real time, as that of the node.
constexpr std::chrono::milliseconds just_now{100};

}  // namespace

void Foreseen::remember(const LockId& waiter, Outlook outlook) {
    const std::scoped_lock lock(mutex_);
    if (waiters_.size() >= most_waiters) waiters_.clear();
    waiters_.insert_or_assign(waiter, Known{std::move(outlook), host_clock().boottime()});
}

std::optional<Outlook> Foreseen::take(const LockId& waiter) {
    const std::scoped_lock lock(mutex_);
    const auto found = waiters_.find(waiter);
    if (found == waiters_.end()) return std::nullopt;
    Known known = std::move(found->second);
    waiters_.erase(found);
    if (host_clock().boottime() - known.since > just_now) return std::nullopt;
    return std::move(known.outlook);
}

}  // namespace holdfast::stores::etcd
