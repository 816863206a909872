#include "values/usual_hold.hpp"

#include "values/text.hpp"

#include <algorithm>
#include <ranges>

namespace holdfast {
namespace {

using std::chrono::milliseconds;

/// The lease that `event` replaced, if it names one.
std::optional<LockId> lease_before(const AuditEvent& event) {
    const auto text = event.details.find("from_lock_id");
    if (text == event.details.end()) return std::nullopt;
    const auto lock_id = LockId::parse(text->second);
    return lock_id ? std::optional(*lock_id) : std::nullopt;
}

/// When the lease of `event` ran out; the event itself may have been written much later.
Instant ran_out_at(const AuditEvent& event) {
    const auto text = event.details.find("expired_at");
    const auto at = text == event.details.end() ? std::nullopt : parse_time(text->second);
    return at ? std::min(*at, event.at) : event.at;
}

}  // namespace

std::optional<UsualHold> UsualHold::of(std::vector<milliseconds> times) {
    if (times.size() < fewest_samples) return std::nullopt;
    std::ranges::sort(times);
    return UsualHold(std::move(times));
}

milliseconds UsualHold::percentile(std::size_t percent) const {
    // The nearest rank: a time that was measured, and never one between two.
    return times_[(times_.size() * percent + 99) / 100 - 1];
}

milliseconds UsualHold::rest_of(milliseconds held) const {
    const auto longer = std::ranges::upper_bound(times_, held);
    const auto count = times_.end() - longer;
    return count == 0 ? p50() : longer[(count - 1) / 2] - held;
}

milliseconds UsualHold::turn_in(const LockStatus& lock, std::uint64_t ahead) const {
    const auto held = time_held(lock);
    // A longer time helps nobody, and the product must not overflow.
    const auto others = static_cast<std::int64_t>(std::min<std::uint64_t>(ahead, 1'000'000));
    return (held ? rest_of(*held) : milliseconds{0}) + others * std::min(p50(), Ttl::longest);
}

std::optional<milliseconds> time_held(const LockStatus& lock) {
    if (lock.state != LockState::held || !lock.lease) return std::nullopt;
    return std::max(lock.as_of - lock.lease->acquired_at, milliseconds{0});
}

void CompletedHolds::add_older(std::span<const AuditEvent> page) {
    for (const AuditEvent& event : page | std::views::reverse) {
        if (is_full()) return;
        // Read from the newest event back: an event first begins its own hold, and then ends the hold before it.
        see_begin(event);
        see_end(event);
    }
}

void CompletedHolds::see_begin(const AuditEvent& event) {
    switch (event.kind) {
        case EventKind::acquired:
        case EventKind::stolen:
        case EventKind::transferred:
        case EventKind::override_approved: break;
        default: return;
    }
    const auto end = ends_.find(event.lock_id);
    if (end == ends_.end()) return;
    times_.push_back(std::max(end->second - event.at, milliseconds{0}));
    ends_.erase(end);
}

void CompletedHolds::see_end(const AuditEvent& event) {
    switch (event.kind) {
        case EventKind::released:
        case EventKind::broken: ends_[event.lock_id] = event.at; break;
        case EventKind::expired: ends_[event.lock_id] = ran_out_at(event); break;
        case EventKind::acquired:
        case EventKind::stolen:
        case EventKind::transferred:
        case EventKind::override_approved:
            if (const auto before = lease_before(event)) ends_[*before] = ran_out_at(event);
            break;
        default: break;
    }
}

}  // namespace holdfast
