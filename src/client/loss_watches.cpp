#include "client/loss_watches.hpp"

#include "client/kept_lease.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// A lease is subscribed to after it has been held for this long.
constexpr milliseconds first_subscription{1000};

/// The pause between two subscriptions of a lease.
constexpr milliseconds pause{1000};

}  // namespace

LossWatches::LossWatches(Store& store, std::function<void()> wake) : store_(store), wake_(std::move(wake)) {}

Boottime LossWatches::add(const KeptLease& lease, Boottime now) {
    const std::scoped_lock lock(mutex_);
    const Boottime subscribe_at = now + first_subscription;
    entries_.insert_or_assign(&lease, Entry{.id = ++last_id_, .subscribe_at = subscribe_at});
    return subscribe_at;
}

void LossWatches::forget(const KeptLease& lease) {
    const std::scoped_lock lock(mutex_);
    if (auto subscription = take_out(lease)) ended_.push_back(std::move(subscription));
}

void LossWatches::remove(const KeptLease& lease) {
    std::unique_ptr<Subscription> ends_outside_the_mutex;
    const std::scoped_lock lock(mutex_);
    ends_outside_the_mutex = take_out(lease);
}

/// Under mutex_.
std::unique_ptr<Subscription> LossWatches::take_out(const KeptLease& lease) {
    const auto found = entries_.find(&lease);
    if (found == entries_.end()) return nullptr;
    auto subscription = std::move(found->second.subscription);
    entries_.erase(found);
    return subscription;
}

/// Under mutex_. Null if the lease is gone, even if another one has its address.
LossWatches::Entry* LossWatches::find(const KeptLease* lease, std::uint64_t id) {
    const auto found = entries_.find(lease);
    return found != entries_.end() && found->second.id == id ? &found->second : nullptr;
}

std::vector<const KeptLease*> LossWatches::take_hints(Boottime now) {
    const std::scoped_lock lock(mutex_);
    std::vector<const KeptLease*> leases;
    for (auto& [lease, entry] : entries_) {
        if (!std::exchange(entry.has_fired, false)) continue;
        if (std::exchange(entry.may_be_lost, false)) leases.push_back(lease);
        entry.subscribe_at = now + pause;
    }
    return leases;
}

bool LossWatches::has_work(Boottime now) const {
    const std::scoped_lock lock(mutex_);
    return !ended_.empty() ||
           std::ranges::any_of(entries_, [&](const auto& each) { return each.second.subscribe_at <= now; });
}

Boottime LossWatches::next_work() const {
    const std::scoped_lock lock(mutex_);
    Boottime next = Boottime::max();
    for (const auto& [lease, entry] : entries_) next = std::min(next, entry.subscribe_at);
    return next;
}

void LossWatches::tend(Boottime now) {
    std::vector<std::unique_ptr<Subscription>> ended;
    std::vector<Due> due;
    {
        const std::scoped_lock lock(mutex_);
        ended.swap(ended_);
        for (auto& [lease, entry] : entries_) {
            if (entry.subscribe_at > now) continue;
            entry.subscribe_at = Boottime::max();
            ended.push_back(std::move(entry.subscription));
            due.push_back({lease, entry.id, {.name = lease->name(), .lease = lease->credentials().lock_id}});
        }
    }
    // End old ones before new ones begin: some stores notify by lease, not by subscription.
    ended.clear();
    for (const Due& one : due) subscribe(one, now);
}

void LossWatches::subscribe(const Due& due, Boottime now) {
    auto subscribed = store_.subscribe(
        due.watch, [this, lease = due.lease, id = due.id](const auto& result) { on_fired(lease, id, result); });
    std::unique_ptr<Subscription> ends_outside_the_mutex;
    const std::scoped_lock lock(mutex_);
    Entry* const entry = find(due.lease, due.id);
    if (subscribed)
        (entry != nullptr ? entry->subscription : ends_outside_the_mutex) = std::move(*subscribed);
    else if (entry != nullptr)
        entry->subscribe_at = now + pause;
}

void LossWatches::on_fired(const KeptLease* lease, std::uint64_t id, const Result<std::optional<HandedOn>>& result) {
    {
        const std::scoped_lock lock(mutex_);
        Entry* const entry = find(lease, id);
        if (entry == nullptr) return;
        entry->has_fired = true;
        entry->may_be_lost = result.has_value() || result.error().store_is_lost;
    }
    wake_();
}

}  // namespace holdfast::client
