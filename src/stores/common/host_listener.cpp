#include "stores/common/host_listener.hpp"

#include <algorithm>

namespace holdfast::stores {

HostListener::~HostListener() {
    for (const auto& [lease, id] : by_lock_id_)
        if (const auto bells = bells_of_leases_.find(id); bells != bells_of_leases_.end())
            bells->second.take_down(lease);
}

void HostListener::add(const HubWatch& watch) {
    ids_.insert(watch.id);
    (watch.watch.lease ? unheard_leases_ : unheard_).insert(watch.id);
    if (const auto called = notified_as(watch.watch)) by_lock_id_.emplace(*called, watch.id);
}

bool HostListener::remove(const HubWatch& watch) {
    if (ids_.erase(watch.id) == 0) return false;
    unheard_.erase(watch.id);
    unheard_leases_.erase(watch.id);
    forget_presence(watch.id);
    again_.erase(watch.id);
    const auto called = notified_as(watch.watch);
    if (!called) return true;
    const auto [begin, end] = by_lock_id_.equal_range(*called);
    by_lock_id_.erase(std::find_if(begin, end, [&](const auto& one) { return one.second == watch.id; }));
    if (const auto hung = bells_of_leases_.extract(watch.id)) hung.mapped().take_down(*called);
    return true;
}

void HostListener::hang(const HubWatch& watch, const base::Doorbells& bells) {
    if (watch.watch.lease) {
        if (!bell_.hang_own(bells, *watch.watch.lease)) return;
        unheard_leases_.erase(watch.id);
        bells_of_leases_.insert_or_assign(watch.id, bells);
    } else if (bell_.hang(bells, *watch.watch.ticket)) {
        set_heard(watch.id);
    } else {
        set_unheard(watch.id);
    }
}

void HostListener::hear_end_of(const HubWatch& watch, const std::string& path) {
    const auto known = presences_.find(watch.id);
    if (known != presences_.end() && known->second.path == path) return;
    forget_presence(watch.id);
    const auto file = files_.add(path);
    if (!file) return;
    presences_.insert_or_assign(watch.id, Presence{path, *file});
    by_presence_[*file].insert(watch.id);
    // It may have ended since it was looked at.
    again_.insert(watch.id);
}

void HostListener::forget_presence(std::uint64_t id) {
    const auto known = presences_.find(id);
    if (known == presences_.end()) return;
    const auto file = by_presence_.find(known->second.file);
    presences_.erase(known);
    if (file == by_presence_.end() || file->second.erase(id) == 0 || !file->second.empty()) return;
    files_.remove(file->first);
    by_presence_.erase(file);
}

HostListener::News HostListener::listen(std::chrono::milliseconds most) {
    std::vector<int> descriptors = bell_.descriptors();
    descriptors.push_back(files_.descriptor());
    interrupt_.sleep(descriptors, unheard_.empty() && again_.empty() ? most : std::min(most, nap_));
    News news{take_rung(), {unheard_.begin(), unheard_.end()}, files_.take_touched()};
    news.due.insert(news.due.end(), again_.begin(), again_.end());
    again_.clear();
    take_ended(news.files, news.due);
    return news;
}

/// Takes those of presences out of `touched`: the store has not asked for them.
void HostListener::take_ended(base::FileWatches::Touched& touched, std::vector<std::uint64_t>& due) {
    std::erase_if(touched.watches, [&](int file) {
        const auto presence = by_presence_.find(file);
        if (presence == by_presence_.end()) return false;
        due.insert(due.end(), presence->second.begin(), presence->second.end());
        again_.insert(presence->second.begin(), presence->second.end());
        return true;
    });
    for (const int file : touched.ended) {
        const auto presence = by_presence_.find(file);
        if (presence == by_presence_.end()) continue;
        for (const std::uint64_t id : presence->second) presences_.erase(id);
        by_presence_.erase(presence);
    }
}

std::vector<std::uint64_t> HostListener::take_rung() {
    const base::Doorbell::Rings rings = bell_.take_rings();
    std::vector<std::uint64_t> rung;
    const auto add_one = [&](const auto& one) { rung.push_back(one.second); };
    if (rings.for_all) std::ranges::for_each(by_lock_id_, add_one);
    for (const LockId& called : rings.called) {
        const auto [begin, end] = by_lock_id_.equal_range(called);
        std::for_each(begin, end, add_one);
    }
    return rung;
}

}  // namespace holdfast::stores
