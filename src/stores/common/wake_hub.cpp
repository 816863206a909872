#include "stores/common/wake_hub.hpp"

#include "base/thread.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace holdfast::stores {
namespace {

using std::chrono::milliseconds;

/// A clock that is moved by hand tells nobody that time has passed.
constexpr milliseconds look_with_manual_clock{20};

/// The longest sleep: timers do not count suspended time.
constexpr milliseconds longest_listening{1000};

}  // namespace

/// What a subscriber holds.
class WakeHub::Handle final : public Subscription {
public:
    Handle(WakeHub& hub, std::uint64_t id) : hub_(hub), id_(id) {}
    ~Handle() override { hub_.end(id_); }

private:
    WakeHub& hub_;
    const std::uint64_t id_;
};

WakeHub::WakeHub(const Clock& clock, std::unique_ptr<WakeSource> source) : clock_(clock), source_(std::move(source)) {}

WakeHub::~WakeHub() {
    thread_.request_stop();
    source_->interrupt();
}

Result<std::unique_ptr<Subscription>> WakeHub::subscribe(const Watch& watch, WatchFired fired) {
    std::unique_ptr<Handle> handle;
    Lock lock(mutex_);
    if (!thread_.joinable())
        if (auto started = start_thread(); !started) return std::unexpected(started.error());
    const std::uint64_t id = ++last_id_;
    handle = std::make_unique<Handle>(*this, id);
    HubWatch hub_watch{id, watch};
    hub_watch.watch.stop = {};
    entries_.emplace(id, Entry{.watch = hub_watch, .fired = std::move(fired)});
    by_name_.insert(key_of(hub_watch));
    added_.push_back(std::move(hub_watch));
    lock.unlock();
    changed_.notify_all();
    source_->interrupt();
    return handle;
}

/// Under the lock.
Result<void> WakeHub::start_thread() {
    try {
        thread_ = base::start_thread("holdfast-watch", [this](const std::stop_token& stop) { serve(stop); });
    } catch (const std::system_error& error) {
        return fail(Errc::store_unavailable, std::string("no thread to wait for changes: ") + error.what());
    }
    return {};
}

void WakeHub::announce(std::span<const Change> changes) {
    bool concerns_somebody = false;
    {
        const Lock lock(mutex_);
        if (entries_.empty()) return;
        for (const Change& change : changes) {
            if (change.next) concerns_somebody |= wake(change.name, change.next);
            if (change.lost_lease) concerns_somebody |= wake(change.name, change.lost_lease);
            if (change.record) concerns_somebody |= wake(change.name, std::nullopt);
        }
    }
    if (concerns_somebody) source_->interrupt();
}

/// Under the lock. False if there is no such watch.
bool WakeHub::wake(const LockName& name, const std::optional<LockId>& called) {
    bool found = false;
    for (auto key = by_name_.lower_bound({name, called, 0}); key != by_name_.end(); ++key) {
        const auto& [watched, own, id] = *key;
        if (watched != name || own != called) break;
        Entry& entry = entries_.at(id);
        if (!entry.is_added) continue;
        schedule(entry, at_once);
        found = true;
    }
    return found;
}

void WakeHub::end(std::uint64_t id) {
    // Destroyed without the lock, because it may own another subscription.
    std::optional<Entry> ended;
    {
        Lock lock(mutex_);
        // A function that ends its own subscription cannot wait for itself.
        if (std::this_thread::get_id() != thread_.get_id()) changed_.wait(lock, [&] { return running_ != id; });
        if (!entries_.contains(id)) return;
        ended = take_out(id);
    }
    source_->interrupt();
}

void WakeHub::serve(const std::stop_token& stop) {
    Lock lock(mutex_);
    while (!stop.stop_requested()) {
        tell_source(lock);
        look_at_due(lock);
        if (!added_.empty() || !removed_.empty()) continue;
        if (entries_.empty()) {
            changed_.wait(lock, stop, [&] { return !added_.empty(); });
            continue;
        }
        const milliseconds time = time_to_sleep();
        if (time == milliseconds{0}) continue;
        lock.unlock();
        const Heard heard = source_->listen(time);
        lock.lock();
        take_in(heard);
    }
}

/// Releases the lock meanwhile.
void WakeHub::tell_source(Lock& lock) {
    const std::vector<HubWatch> removed = std::exchange(removed_, {});
    std::vector<HubWatch> added = std::exchange(added_, {});
    // A watch that was added and removed in between need not be announced to the source.
    std::erase_if(added, [&](const HubWatch& watch) { return !entries_.contains(watch.id); });
    if (removed.empty() && added.empty()) return;
    lock.unlock();
    if (!removed.empty()) source_->remove(removed);
    if (!added.empty()) source_->add(added);
    lock.lock();
    for (const HubWatch& watch : added) {
        const auto found = entries_.find(watch.id);
        if (found == entries_.end()) continue;
        found->second.is_added = true;
        schedule(found->second, at_once);
    }
}

/// Under the lock. While it is looked at, an entry is not in the schedule, unless something more is heard of it.
std::vector<HubWatch> WakeHub::take_due() {
    const Boottime now = clock_.boottime();
    std::vector<HubWatch> due;
    while (!schedule_.empty() && schedule_.begin()->first <= now) {
        Entry& entry = entries_.at(schedule_.begin()->second);
        due.push_back(entry.watch);
        schedule(entry, not_scheduled);
    }
    return due;
}

/// Releases the lock meanwhile.
void WakeHub::look_at_due(Lock& lock) {
    const std::vector<HubWatch> due = take_due();
    if (due.empty()) return;
    const Boottime now = clock_.boottime();
    lock.unlock();
    std::vector<Sighting> seen = source_->look(due);
    lock.lock();
    for (std::size_t at = 0; at < due.size(); ++at) {
        const auto found = entries_.find(due[at].id);
        if (found == entries_.end()) continue;
        if (seen[at].fired)
            fire(lock, due[at].id, std::move(*seen[at].fired));
        else if (found->second.look_at == not_scheduled)
            schedule(found->second, now + seen[at].next_look);
    }
}

/// Releases the lock while the subscriber's function runs.
void WakeHub::fire(Lock& lock, std::uint64_t id, Result<std::optional<HandedOn>> result) {
    // Destroyed without the lock and before anybody is told that it has returned: it may own subscriptions, too.
    std::optional<Entry> entry = take_out(id);
    running_ = id;
    lock.unlock();
    entry->fired(std::move(result));
    entry.reset();
    lock.lock();
    running_ = 0;
    changed_.notify_all();
}

/// Under the lock.
void WakeHub::take_in(const Heard& heard) {
    if (heard.all)
        for (auto& [id, entry] : entries_)
            if (entry.is_added) schedule(entry, at_once);
    for (const std::uint64_t id : heard.ids)
        if (const auto found = entries_.find(id); found != entries_.end() && found->second.is_added)
            schedule(found->second, at_once);
}

/// Under the lock.
milliseconds WakeHub::time_to_sleep() const {
    const milliseconds longest = clock_.judges() ? look_with_manual_clock : longest_listening;
    if (schedule_.empty()) return longest;
    return std::clamp(schedule_.begin()->first - std::min(clock_.boottime(), schedule_.begin()->first), milliseconds{0},
                      longest);
}

WakeHub::Key WakeHub::key_of(const HubWatch& watch) { return {watch.watch.name, notified_as(watch.watch), watch.id}; }

/// Under the lock.
void WakeHub::schedule(Entry& entry, Boottime look_at) {
    schedule_.erase({entry.look_at, entry.watch.id});
    entry.look_at = look_at;
    if (look_at != not_scheduled) schedule_.emplace(look_at, entry.watch.id);
}

/// Under the lock. The entry is not looked at any more, and the source will be told.
WakeHub::Entry WakeHub::take_out(std::uint64_t id) {
    const auto found = entries_.find(id);
    schedule(found->second, not_scheduled);
    by_name_.erase(key_of(found->second.watch));
    removed_.push_back(found->second.watch);
    Entry entry = std::move(found->second);
    entries_.erase(found);
    return entry;
}

}  // namespace holdfast::stores
