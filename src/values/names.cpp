#include "holdfast/audit.hpp"
#include "holdfast/request.hpp"
#include "holdfast/store.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

namespace holdfast {

const LockName& name_of(const Request& request) {
    return std::visit([](const auto& r) -> const LockName& { return r.name; }, request);
}

const Sender* sender_of(const Request& request) {
    return std::visit(
        [](const auto& r) -> const Sender* {
            if constexpr (requires { r.sender; })
                return &r.sender;
            else
                return nullptr;
        },
        request);
}

std::string_view name_of(EventKind kind) {
    switch (kind) {
        case EventKind::acquired: return "acquired";
        case EventKind::renewed: return "renewed";
        case EventKind::released: return "released";
        case EventKind::stolen: return "stolen";
        case EventKind::broken: return "broken";
        case EventKind::transferred: return "transferred";
        case EventKind::revived: return "revived";
        case EventKind::override_requested: return "override_requested";
        case EventKind::override_approved: return "override_approved";
        case EventKind::override_denied: return "override_denied";
        case EventKind::pruned: return "pruned";
        case EventKind::expired: return "expired";
        case EventKind::fenced: return "fenced";
        case EventKind::repaired: return "repaired";
    }
    std::abort();
}

std::string_view name_of(Grade grade) {
    switch (grade) {
        case Grade::a: return "A";
        case Grade::b: return "B";
        case Grade::c: return "C";
    }
    std::abort();
}

std::optional<HandedOn> HandedOn::to(const LockId& waiter, LockStatus lock, Boottime seen_from) {
    if (lock.state != LockState::held || lock.lease->lock_id != waiter) return std::nullopt;
    return HandedOn{std::move(lock), seen_from};
}

Reply Store::apply_one(const Request& request, Deadline deadline) {
    auto replies = apply({&request, 1}, deadline);
    if (!replies) return std::unexpected(replies.error());
    return std::move(replies->front());
}

Result<std::optional<HandedOn>> Store::wait_for_change(const Watch& watch, Deadline deadline) {
    std::mutex mutex;
    std::condition_variable_any woken;
    std::optional<Result<std::optional<HandedOn>>> result;  // Guarded by mutex.
    const auto subscription = subscribe(watch, [&](Result<std::optional<HandedOn>> seen) {
        const std::scoped_lock lock(mutex);
        result = std::move(seen);
        woken.notify_all();
    });
    if (!subscription) return std::unexpected(subscription.error());
    std::unique_lock lock(mutex);
    // In slices, because a clock that is moved by hand wakes nobody when it passes the deadline, and timers do not
    // count suspended time.
    const std::chrono::milliseconds slice{clock().judges() ? 20 : 1000};
    while (!result && !deadline.passed(clock()) && !watch.stop.stop_requested())
        woken.wait_for(lock, watch.stop, std::min(deadline.remaining(clock()), slice),
                       [&] { return result.has_value(); });
    if (result) return std::move(*result);
    return std::nullopt;
}

Result<std::optional<HandedOn>> Store::check_handed_over(const Watch& watch, const Clock& clock, Deadline deadline) {
    if (!watch.ticket) return std::nullopt;
    const Boottime before = clock.boottime();
    auto lock = inspect(watch.name, deadline);
    if (!lock) return std::unexpected(lock.error());
    return HandedOn::to(*watch.ticket, std::move(*lock), before);
}

}  // namespace holdfast
