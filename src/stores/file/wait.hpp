#pragma once

#include "base/turn.hpp"
#include "stores/common/bonds.hpp"
#include "stores/common/host_listener.hpp"
#include "stores/common/poll_ticks.hpp"
#include "stores/file/lock_folder.hpp"

#include <functional>
#include <map>
#include <optional>
#include <unordered_set>

namespace holdfast::stores::file {

/// What is known of the queue of one lock, for all of its waiters.
///
/// The queue is a folder, and reading it costs more the longer it is; reading the record always costs the same. So the
/// queue is read only when the record shows that a waiter could be first by now.
class QueueReading {
public:
    explicit QueueReading(const Clock& clock) : clock_(&clock) {}

    /// The place of `ticket` when the queue was read.
    [[nodiscard]] base::Standing standing_of(const LockId& ticket) const;

    /// Whether `ticket` could be first although it was not when the queue was read; `seq` and `is_open` are those of
    /// the record now.
    [[nodiscard]] bool may_be_first(const LockId& ticket, std::uint64_t seq, bool is_open) const;

    [[nodiscard]] Result<void> read(const Folder& lock, const Bonds& bonds, std::uint64_t seq, Instant now);

private:
    const Clock* clock_;
    std::map<LockId, std::uint64_t> ahead_{};  ///< For each live ticket, how many are before it.
    std::uint64_t seq_ = 0;                    ///< Of the lock's newest event.
    Boottime read_at_ = Boottime::min();
};

/// Listens for the waiters and holders of one Store object: at one doorbell for those with a ticket or a lease, and
/// with one inotify instance at the folders of locks for the others.
class Source final : public WakeSource {
public:
    using FindLock = std::function<Result<std::optional<LockFolder>>(const LockName& name)>;

    Source(FindLock find_lock, const Bonds& bonds, const Clock& clock);

    void add(std::span<const HubWatch> watches) override;
    void remove(std::span<const HubWatch> watches) override;
    [[nodiscard]] std::vector<Sighting> look(std::span<const HubWatch> watches) override;
    [[nodiscard]] Heard listen(std::chrono::milliseconds most) override;
    void interrupt() override { listener_.interrupt(); }

private:
    /// A watched lock.
    struct WatchedLock {
        explicit WatchedLock(const Clock& clock) : queue(clock) {}
        std::size_t watches = 0;
        std::unordered_set<std::uint64_t> without_ticket{};
        int folder = -1;  ///< The number of the inotify watch on its folder; negative if there is none.
        QueueReading queue;
    };
    struct View;

    [[nodiscard]] Result<View> view_of(const LockName& name) const;
    void listen_for(const HubWatch& watch, const Result<std::optional<LockFolder>>& folder);
    [[nodiscard]] Sighting look_at(const HubWatch& watch, View& view);
    [[nodiscard]] std::chrono::milliseconds next_look_at_lease() const;
    [[nodiscard]] Result<std::optional<std::chrono::milliseconds>> sleep_in_line(const HubWatch& watch, View& view);
    void hear_end_of_holder(const HubWatch& watch, const View& view);
    void take_in(const base::FileWatches::Touched& touched, Heard& heard);

    const FindLock find_lock_;
    const Bonds& bonds_;
    const Clock& clock_;
    const PollTicks ticks_;
    HostListener listener_;
    std::map<LockName, WatchedLock> locks_{};
    std::map<int, LockName> by_folder_{};            ///< By the number of the inotify watch.
    std::unordered_set<std::uint64_t> must_read_{};  ///< New or rung: the next look reads the queue.
};

}  // namespace holdfast::stores::file
