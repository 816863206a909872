#pragma once

#include "base/doorbell.hpp"
#include "base/file_watch.hpp"
#include "base/interrupt.hpp"
#include "stores/common/wake_hub.hpp"

#include <chrono>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace holdfast::stores {

/// What a store in files listens with, for all watches of a Store object: one doorbell for those with a ticket or a
/// lease, and one inotify instance for the others.
///
/// For one thread, except for `interrupt`.
class HostListener {
public:
    /// `nap`: the longest sleep while there is a watch for which nothing can be heard.
    explicit HostListener(std::chrono::milliseconds nap) : nap_(nap) {}
    HostListener(const HostListener&) = delete;
    HostListener& operator=(const HostListener&) = delete;
    ~HostListener();

    /// From now on a ring for the watch's ticket or lease is reported for this watch. Until `set_heard`, nothing else
    /// is.
    void add(const HubWatch& watch);
    /// False if it was never added. The bell of a ticket stays as long as the ticket, because its owner usually watches
    /// again. That of a lease is removed: no request of its holder removes it.
    bool remove(const HubWatch& watch);

    /// Puts the bell of the watch's ticket or lease in place.
    void hang(const HubWatch& watch, const base::Doorbells& bells);
    /// The watch is looked at when the process that holds the file at `path` open for writing may have ended. Replaces
    /// an earlier file of this watch.
    void hear_end_of(const HubWatch& watch, const std::string& path);

    void set_heard(std::uint64_t id) { unheard_.erase(id); }
    void set_unheard(std::uint64_t id) { unheard_.insert(id); }
    [[nodiscard]] bool is_unheard(const HubWatch& watch) const {
        return (watch.watch.lease ? unheard_leases_ : unheard_).contains(watch.id);
    }

    [[nodiscard]] base::FileWatches& files() { return files_; }

    struct News {
        std::vector<std::uint64_t> rung{};
        std::vector<std::uint64_t> due{};  ///< Other watches to look at now.
        base::FileWatches::Touched files{};
    };
    /// As `WakeSource::listen`.
    [[nodiscard]] News listen(std::chrono::milliseconds most);
    void interrupt() const { interrupt_.raise(); }

private:
    struct Presence {
        std::string path{};
        int file = -1;  ///< The number of the inotify watch.
    };

    [[nodiscard]] std::vector<std::uint64_t> take_rung();
    void take_ended(base::FileWatches::Touched& touched, std::vector<std::uint64_t>& due);
    void forget_presence(std::uint64_t id);

    const std::chrono::milliseconds nap_;
    const base::Interrupt interrupt_{};
    base::Doorbell bell_{};
    base::FileWatches files_{};
    std::unordered_set<std::uint64_t> ids_{};
    std::multimap<LockId, std::uint64_t> by_lock_id_{};
    std::unordered_set<std::uint64_t> unheard_{};                           ///< Without those of leases,
    std::unordered_set<std::uint64_t> unheard_leases_{};                    ///< for which the usual look must do.
    std::unordered_map<std::uint64_t, base::Doorbells> bells_of_leases_{};  ///< The bells that were made.
    std::unordered_map<std::uint64_t, Presence> presences_{};
    std::map<int, std::unordered_set<std::uint64_t>> by_presence_{};
    /// To be looked at once more after a nap, because the kernel reports that a file is closed before it frees the lock
    /// on it.
    std::unordered_set<std::uint64_t> again_{};
};

}  // namespace holdfast::stores
