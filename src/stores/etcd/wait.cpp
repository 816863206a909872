#include "stores/etcd/wait.hpp"

#include "base/interrupt.hpp"
#include "stores/common/poll_ticks.hpp"
#include "stores/common/sealed.hpp"
#include "stores/etcd/read.hpp"

#include <algorithm>
#include <ranges>
#include <unordered_map>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

/// A waiter without a watch looks again after this time.
constexpr milliseconds look_again_unwatched{500};
/// The shortest time between two looks, when the next second of the node's clock may end the wait.
constexpr milliseconds look_again_soonest{200};
/// Waiters that are not notified look together, at most twice a second.
constexpr milliseconds polling_step{500};
/// A look fails if the cluster is silent for so long.
constexpr milliseconds longest_silence{5000};

class EtcdWakeSource final : public WakeSource {
public:
    EtcdWakeSource(const Clock& clock, Remote& remote, WaitPredictions& predictions, Optimistic& optimistic)
        : clock_(clock),
          remote_(remote),
          predictions_(predictions),
          optimistic_(optimistic),
          key_watches_(remote.cluster()),
          ticks_(polling_step) {}

    /// The first look finds the key to watch. A change between the look and the watch is noticed by the revision at
    /// which the watch begins.
    void add(std::span<const HubWatch> watches) override {
        for (const HubWatch& one : watches) waiters_.emplace(one.id, Waiter{.watch = one.watch});
    }

    void remove(std::span<const HubWatch> watches) override {
        for (const HubWatch& one : watches) {
            waiters_.erase(one.id);
            key_watches_.drop(one.id);
        }
    }

    std::vector<Sighting> look(std::span<const HubWatch> watches) override {
        if (key_watches_.leave_old_node()) is_all_due_ = true;
        std::vector<Sighting> sightings(watches.size());
        std::vector<std::size_t> to_read;
        std::vector<Watch> read_for;
        for (std::size_t i = 0; i < watches.size(); ++i) {
            const auto& [id, watch] = watches[i];
            if (waiters_.at(id).turn) {
                sightings[i].fired = after_turn(waiters_.at(id));
            } else if (auto predicted = watch.ticket ? predictions_.take(*watch.ticket) : std::nullopt) {
                sightings[i] = wait_for(id, std::move(*predicted));
            } else {
                to_read.push_back(i);
                read_for.push_back(watch);
            }
        }
        base::CallBudget budget(clock_, Deadline::never(), longest_silence);
        auto targets = read_wait_targets(remote_, read_for, budget);
        for (std::size_t n = 0; n < to_read.size(); ++n)
            sightings[to_read[n]] = targets[n] ? wait_for(watches[to_read[n]].id, std::move(*targets[n]))
                                               : Sighting{.fired = std::unexpected(targets[n].error())};
        return sightings;
    }

    Heard listen(milliseconds most) override {
        const auto news = key_watches_.wait(is_all_due_ ? milliseconds{0} : most, interrupt_.fd());
        interrupt_.clear();
        Heard heard{.all = std::exchange(is_all_due_, false) || news.lost};
        for (const KeyNews& one : news.keys)
            for (const std::uint64_t id : one.listeners)
                if (concerns(waiters_.at(id), one)) heard.ids.push_back(id);
        return heard;
    }

    void interrupt() override { interrupt_.raise(); }

private:
    struct Waiter {
        Watch watch;
        WaitTarget target{};             ///< The result of the last look.
        std::optional<KeyValue> turn{};  ///< The record that shows that its turn has come.
    };

    /// Ends the watch if its turn may have come; otherwise listens.
    Sighting wait_for(std::uint64_t id, WaitTarget target) {
        Waiter& waiter = waiters_.at(id);
        const Watch& watch = waiter.watch;
        const bool has_changed =
            watch.lease ? target.lease != watch.lease : !watch.ticket && target.seq != watch.seen_seq;
        if (target.is_due || has_changed) return {.fired = check_lock(watch)};
        const milliseconds time = std::max(std::min(target.look_again, next_poll()), look_again_soonest);
        const bool listens = key_watches_.listen(id, target.watched);
        waiter.target = std::move(target);
        return {.next_look = listens ? time : std::min(time, look_again_unwatched)};
    }

    [[nodiscard]] milliseconds next_poll() const {
        return ticks_.aligned(clock_.boottime(), look_again_after - polling_step);
    }

    /// Whether `news` makes a look necessary.
    static bool concerns(Waiter& waiter, const KeyNews& news) {
        // Events between the look and the beginning of the watch are only seen by another look.
        if (news.began_after > waiter.target.revision) return true;
        for (const KeyValue& event : std::views::reverse(news.events)) {
            if (event.changed_in <= waiter.target.revision) continue;
            // A waiter that has moved up looks whether it is the first now, and most are not.
            if (waiter.target.watched.only_deletes) return true;
            // A renewal changes nothing for a waiter in the queue, nor for the holder itself.
            if (waiter.watch.ticket && !is_its_turn(*waiter.watch.ticket, event.value, waiter.watch.name)) continue;
            if (waiter.watch.lease && has_lease(*waiter.watch.lease, event.value, waiter.watch.name)) continue;
            waiter.turn = event;
            return true;
        }
        return false;
    }

    Result<std::optional<HandedOn>> after_turn(const Waiter& waiter) {
        if (auto handed_on = handed_on_by_event(waiter)) return handed_on;
        return check_lock(waiter.watch);
    }

    /// The lock from the event of a watch, if it was handed over to the waiter: such an event is committed, so it is as
    /// durable as a reply. Only if the clock need not be read either.
    std::optional<HandedOn> handed_on_by_event(const Waiter& waiter) {
        const Watch& watch = waiter.watch;
        const Boottime before = clock_.boottime();
        const auto moment = watch.ticket ? remote_.node_clock().reckoned() : std::nullopt;
        if (!moment) return std::nullopt;
        const auto record = unsealed_record(bytes_of(waiter.turn->value), watch.name, moment->now,
                                            remote_.node_clock().tolerance(*moment));
        if (!record || record->moved) return std::nullopt;
        const LockView view{.record = record->value, .waiters = std::max<std::uint64_t>(waiter.target.waiters, 1) - 1};
        auto handed_on = HandedOn::to(*watch.ticket, status_at(view, *moment), before);
        if (handed_on) expect_release(watch, *waiter.turn, waiter.target.next_ticket);
        return handed_on;
    }

    /// Whether the lock was handed over to the waiter, and which ticket is the next.
    Result<std::optional<HandedOn>> check_lock(const Watch& watch) {
        if (!watch.ticket) return std::nullopt;
        base::CallBudget budget(clock_, Deadline::never(), longest_silence);
        const std::vector<Wanted> wanted{{.name = watch.name, .depth = 1}};
        BatchView view(remote_.keys(), wanted);
        const Boottime before = clock_.boottime();
        auto moment = remote_.look(view, budget);
        if (!moment) return std::unexpected(moment.error());
        const auto exists = remote_.exists(view);
        if (!exists) return std::unexpected(exists.error());
        if (!*exists) return std::nullopt;
        const auto lock = remote_.judged(view, wanted.front(), *moment, budget);
        if (!lock) return std::unexpected(lock.error());
        auto handed_on = HandedOn::to(*watch.ticket, status_at(*lock, *moment), before);
        if (!handed_on || lock->moved || !lock->moved_tickets.empty()) return handed_on;
        const kernel::Ticket* const first = head_of(*lock, moment->now);
        expect_release(watch, *view.record(watch.name),
                       first == nullptr ? std::nullopt : view.ticket(watch.name, first->number));
        return handed_on;
    }

    /// The holder of a lock whose next ticket is known gives it back in one round trip.
    void expect_release(const Watch& watch, const KeyValue& record, const std::optional<KeyValue>& next) {
        if (next)
            optimistic_.expect_release(*watch.ticket, {record, *next});
        else
            optimistic_.remember(watch.name, record, true);
    }

    const Clock& clock_;
    Remote& remote_;
    WaitPredictions& predictions_;
    Optimistic& optimistic_;
    KeyWatches key_watches_;
    const base::Interrupt interrupt_{};
    const PollTicks ticks_;
    std::unordered_map<std::uint64_t, Waiter> waiters_{};
    bool is_all_due_ = false;  ///< The stream was ended, so `listen` has to say that everything must be looked at.
};

}  // namespace

std::unique_ptr<WakeSource> make_wake_source(const Clock& clock, Remote& remote, WaitPredictions& predictions,
                                             Optimistic& optimistic) {
    return std::make_unique<EtcdWakeSource>(clock, remote, predictions, optimistic);
}

}  // namespace holdfast::stores::etcd
