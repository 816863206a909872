#pragma once

#include "client/queued_acquire.hpp"
#include "server/exchange.hpp"
#include "server/services.hpp"

#include <chrono>
#include <memory>
#include <set>

namespace holdfast::server {

/// Requests that wait for their lock. None of them has a thread: the store's hub tells when a lock has changed, and the
/// loop does the rest. A client that hangs up loses its place at once. Only on the loop's thread.
class WaitingRoom {
public:
    explicit WaitingRoom(Services& services) : services_(services) {}
    ~WaitingRoom();

    /// Answers `exchange` when `request` was granted, or with the last refusal after `wait`.
    void admit(const ExchangePtr& exchange, const Acquire& request, std::chrono::milliseconds wait);

    /// Sends everybody away: their places are given up.
    void stop();
    [[nodiscard]] bool is_empty() const { return waiters_.empty(); }

private:
    class Waiter;

    void leave(const std::shared_ptr<Waiter>& waiter);

    Services& services_;
    std::set<std::shared_ptr<Waiter>> waiters_{};
};

}  // namespace holdfast::server
