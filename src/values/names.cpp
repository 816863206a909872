#include "holdfast/audit.hpp"
#include "holdfast/request.hpp"
#include "holdfast/store.hpp"

#include <cstdlib>

namespace holdfast {

const LockName& name_of(const Request& request) {
    return std::visit([](const auto& r) -> const LockName& { return r.name; }, request);
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

Result<std::optional<HandedOn>> Store::look_whose_it_is(const Watch& watch, const Clock& clock, Deadline deadline) {
    if (!watch.ticket) return std::nullopt;
    const Boottime before = clock.boottime();
    auto lock = inspect(watch.name, deadline);
    if (!lock) return std::unexpected(lock.error());
    return HandedOn::to(*watch.ticket, std::move(*lock), before);
}

}  // namespace holdfast
