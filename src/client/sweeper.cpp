#include "client/sweeper.hpp"

#include <chrono>

namespace holdfast::client {
namespace {

/// Locks that are read at once: others wait for it in a store that does one thing at a time.
constexpr std::size_t locks_per_page = 100;
/// In one batch: how long others may have to wait for it.
constexpr std::size_t most_expired_at_once = 50;
constexpr std::chrono::seconds sweep_patience{30};

bool was_announced(const Reply& reply) {
    // Refused as not held: somebody else did it first, or the lock was taken since.
    return reply || reply.error().code == Errc::lock_not_held;
}

}  // namespace

Deadline Sweeper::soon() const { return Deadline::in(store_.clock(), sweep_patience); }

Result<void> Sweeper::end(const std::vector<Request>& requests, Swept& swept) {
    if (requests.empty()) return {};
    const auto replies = store_.apply(requests, soon());
    if (!replies) return std::unexpected(replies.error());
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const auto& request = std::get<Expire>(requests[i]);
        const Reply& reply = (*replies)[i];
        if (reply) ++swept.ended;
        // Refused because it is live: by the clock that decides, its time is not quite over.
        if (was_announced(reply)) still_there_.insert_or_assign(request.name, request.lock_id);
    }
    return {};
}

Result<Swept> Sweeper::sweep(const std::stop_token& stop, const Look& look) {
    Swept swept;
    still_there_.clear();
    ListQuery page{.limit = locks_per_page, .with_unreadable = true};
    while (!stop.stop_requested()) {
        const auto locks = store_.list(page, soon());
        if (!locks) return std::unexpected(locks.error());
        if (locks->empty()) break;
        swept.locks += locks->size();
        if (look) look(*locks);
        std::vector<Request> requests;
        for (const LockStatus& lock : *locks) {
            if (lock.state != LockState::expired || !lock.lease) continue;
            const auto known = ended_.find(lock.name);
            if (known != ended_.end() && known->second == lock.lease->lock_id) {
                still_there_.insert(*known);
                continue;
            }
            requests.emplace_back(Expire{lock.name, lock.lease->lock_id});
            if (requests.size() < most_expired_at_once) continue;
            if (auto ended = end(requests, swept); !ended) return std::unexpected(ended.error());
            requests.clear();
        }
        if (auto ended = end(requests, swept); !ended) return std::unexpected(ended.error());
        page.after = locks->back().name.text();
    }
    ended_ = std::move(still_there_);
    still_there_.clear();
    return swept;
}

}  // namespace holdfast::client
