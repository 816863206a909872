#include "stores/memory/wait.hpp"

#include "base/turn.hpp"
#include "kernel/step.hpp"

#include <optional>
#include <set>

namespace holdfast::stores::memory {
namespace {

/// One lock, as all watches of it see it.
class View {
public:
    View(const Entry* entry, const Clock& clock) : entry_(entry), seen_from_(clock.boottime()), now_(clock.wall()) {
        if (entry == nullptr) return;
        for (const auto& [number, ticket] : entry->tickets) {
            if (ticket.expires_at <= now_) continue;
            if (!first_) first_ = ticket.lock_id;
            live_.insert(ticket.lock_id);
        }
    }

    [[nodiscard]] Sighting look(const Watch& watch) const {
        const std::uint64_t seq = entry_ == nullptr ? 0 : entry_->record.seq;
        std::optional<Lease> lease;
        if (entry_ != nullptr && entry_->record.held) lease = entry_->record.held->lease;
        if (watch.lease) return is_lost(watch, lease) ? fires(std::nullopt) : Sighting{};
        if (!watch.ticket) return seq != watch.seen_seq ? fires(std::nullopt) : Sighting{};
        if (entry_ == nullptr) return fires(std::nullopt);
        const auto standing = !live_.contains(*watch.ticket) ? base::Standing::absent
                              : first_ == watch.ticket       ? base::Standing::first
                                                             : base::Standing::behind;
        const auto sleep = base::sleep_in_line(standing, lease, now_);
        if (sleep) return {.next_look = *sleep};
        return fires(HandedOn::to(*watch.ticket, kernel::status_of(entry_->record, live_.size(), now_), seen_from_));
    }

private:
    [[nodiscard]] static Sighting fires(std::optional<HandedOn> result) { return {.fired = std::move(result)}; }

    const Entry* entry_;
    Boottime seen_from_;
    Instant now_;
    std::optional<LockId> first_{};
    std::set<LockId> live_{};
};

}  // namespace

std::vector<Sighting> Source::look(std::span<const HubWatch> watches) {
    const std::scoped_lock lock(mutex_);
    std::map<LockName, View> views;
    std::vector<Sighting> seen;
    seen.reserve(watches.size());
    for (const HubWatch& watch : watches) {
        const LockName& name = watch.watch.name;
        auto view = views.find(name);
        if (view == views.end()) {
            const auto found = entries_.find(name);
            view = views.try_emplace(name, found == entries_.end() ? nullptr : &found->second, clock_).first;
        }
        seen.push_back(view->second.look(watch.watch));
    }
    return seen;
}

Heard Source::listen(std::chrono::milliseconds most) {
    interrupt_.sleep({}, most);
    return {};
}

}  // namespace holdfast::stores::memory
