#include "stores/redis/optimistic.hpp"

#include <algorithm>

namespace holdfast::stores::redis {

KnownLock predict(const LockCache<KnownLock>& locks, const LockName& name) {
    if (auto known = locks.find(name)) return std::move(*known);
    return {{}, LockView{.record = kernel::blank(name)}};
}

bool may_send(std::span<const KnownLock> predictions, std::span<const holdfast::Reply> replies,
              std::span<const Change> changes, Instant now) {
    const auto is_settled_with_queue = [&](const KnownLock& lock) {
        const auto has_ended = [&](const kernel::Ticket& ticket) { return ticket.expires_at <= now; };
        return is_settled(lock.view.record, now) && std::ranges::none_of(lock.view.tickets, has_ended);
    };
    return !changes.empty() && std::ranges::all_of(predictions, is_settled_with_queue) &&
           std::ranges::all_of(replies, &holdfast::Reply::has_value);
}

}  // namespace holdfast::stores::redis
