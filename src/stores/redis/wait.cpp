#include "stores/redis/wait.hpp"

#include "base/interrupt.hpp"
#include "stores/common/poll_ticks.hpp"
#include "stores/redis/pubsub.hpp"
#include "stores/redis/read.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace holdfast::stores::redis {
namespace {

using std::chrono::milliseconds;

/// The longest sleep without looking: an announcement may be lost.
constexpr milliseconds longest_sleep{1000};
/// Four looks in a second at most, however many watches there are.
constexpr milliseconds polling_step{250};
/// After this a silent server counts as unreachable.
constexpr milliseconds look_limit{2000};

class RedisWakeSource final : public WakeSource {
public:
    RedisWakeSource(Remote& remote, LockCache<KnownLock>& locks)
        : remote_(remote), locks_(locks), pubsub_(remote.server().address()), ticks_(polling_step) {}

    void add(std::span<const HubWatch> watches) override {
        std::vector<std::string> channels;
        for (const HubWatch& one : watches) {
            auto& listeners = listeners_[channel_of(one.watch)];
            if (listeners.empty()) channels.push_back(channel_of(one.watch));
            listeners.insert(one.id);
        }
        if (!channels.empty()) pubsub_.subscribe(channels);
    }

    void remove(std::span<const HubWatch> watches) override {
        std::vector<std::string> channels;
        for (const HubWatch& one : watches) {
            called_.erase(one.id);
            const auto found = listeners_.find(channel_of(one.watch));
            if (found == listeners_.end() || found->second.erase(one.id) == 0 || !found->second.empty()) continue;
            channels.push_back(found->first);
            listeners_.erase(found);
        }
        if (!channels.empty()) pubsub_.unsubscribe(channels);
    }

    std::vector<Sighting> look(std::span<const HubWatch> watches) override {
        std::vector<Sighting> sightings(watches.size());
        // By lock: one look serves all its watches.
        std::vector<std::size_t> order(watches.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::ranges::stable_sort(order, {}, [&](std::size_t i) -> const LockName& { return watches[i].watch.name; });
        std::optional<Error> failure;
        for (std::span<const std::size_t> rest = order; !rest.empty();) {
            const auto some = rest.first(std::min(rest.size(), locks_at_once));
            rest = rest.subspan(some.size());
            // Wait only once for a server that cannot be reached.
            if (!failure) failure = look_at_some(watches, some, sightings);
            if (!failure) continue;
            for (const std::size_t i : some) sightings[i].fired = std::unexpected(*failure);
        }
        return sightings;
    }

    Heard listen(milliseconds most) override {
        const Announced announced = pubsub_.wait(most, interrupt_.fd());
        interrupt_.clear();
        Heard heard{.all = announced.may_have_missed};
        for (const std::string& channel : announced.channels) {
            const auto found = listeners_.find(channel);
            if (found == listeners_.end()) continue;
            heard.ids.insert(heard.ids.end(), found->second.begin(), found->second.end());
            called_.insert(found->second.begin(), found->second.end());
        }
        return heard;
    }

    void interrupt() override { interrupt_.raise(); }

private:
    /// The channel of a watch with a ticket announces only the waiter's turn, that of a lease only its end.
    [[nodiscard]] std::string channel_of(const Watch& watch) const {
        const auto called = notified_as(watch);
        return called ? remote_.keys().turn(*called) : remote_.keys().lock(watch.name);
    }

    /// Looks at those of `watches` with the indexes `some`, which are in the order of their locks, in one round trip.
    /// An error concerns the whole store.
    std::optional<Error> look_at_some(std::span<const HubWatch> watches, std::span<const std::size_t> some,
                                      std::vector<Sighting>& sightings) {
        std::vector<Wanted> wanted;
        std::vector<std::size_t> places;  // Positions in `wanted`, one for each of `some`.
        for (const std::size_t i : some) {
            const Watch& watch = watches[i].watch;
            if (wanted.empty() || wanted.back().name != watch.name) wanted.push_back({.name = watch.name, .depth = 0});
            places.push_back(wanted.size() - 1);
            if (!watch.ticket) continue;
            wanted.back().depth = 1;
            wanted.back().own_tickets.push_back(*watch.ticket);
        }
        const Boottime before = remote_.clock().boottime();
        const auto looked = remote_.look(wanted, IfMissing::nothing, Deadline::in(remote_.clock(), look_limit));
        if (!looked) return looked.error();
        std::vector<Result<SeenLock>> locks;
        for (std::size_t i = 0; i < wanted.size(); ++i) locks.push_back(seen_lock(*looked, i, wanted[i].name, before));
        for (std::size_t n = 0; n < some.size(); ++n) {
            const Result<SeenLock>& lock = locks[places[n]];
            sightings[some[n]] =
                lock ? sighting_of(watches[some[n]], *lock) : Sighting{.fired = std::unexpected(lock.error())};
        }
        return std::nullopt;
    }

    struct SeenLock {
        LockView view;
        std::string value{};  ///< The value of its key.
        Instant now{};        ///< The time that judges its lease and tickets.
        Boottime before{};    ///< When the look began.
    };

    [[nodiscard]] static Result<SeenLock> seen_lock(const Looked& looked, std::size_t place, const LockName& name,
                                                    Boottime before) {
        SeenLock lock{.view = {.record = kernel::blank(name)}, .now = looked.now, .before = before};
        if (!looked.exists()) return lock;
        Sight sight;
        auto view = view_of(looked.answer.value(), place, name, looked.now, sight);
        if (!view) return std::unexpected(view.error());
        lock.view = std::move(*view);
        lock.value = std::move(sight.value);
        return lock;
    }

    [[nodiscard]] Sighting sighting_of(const HubWatch& one, const SeenLock& lock) {
        const Watch& watch = one.watch;
        const bool is_called = called_.erase(one.id) > 0;
        if (watch.lease) {
            const auto& held = lock.view.record.held;
            if (!is_lost(watch, held ? std::optional(held->lease) : std::nullopt)) return {.next_look = next_poll()};
            return {.fired = Result<std::optional<HandedOn>>()};
        }
        if (!watch.ticket) {
            if (lock.view.record.seq == watch.seen_seq) return {.next_look = next_poll()};
            return {.fired = Result<std::optional<HandedOn>>()};
        }
        auto handed_on =
            HandedOn::to(*watch.ticket, kernel::status_of(lock.view.record, lock.view.waiters, lock.now), lock.before);
        if (handed_on) remember(watch.name, lock);
        const milliseconds time = time_to_turn(*watch.ticket, lock);
        if (handed_on || is_called || time == milliseconds{0}) return {.fired = std::move(handed_on)};
        return {.next_look = std::min(time, next_poll())};
    }

    /// How long until the lease ends and the owner of `ticket` may take the lock, if it is first in the queue. Zero:
    /// now, or it has lost its place.
    [[nodiscard]] static milliseconds time_to_turn(const LockId& ticket, const SeenLock& lock) {
        const auto& tickets = lock.view.tickets;
        if (std::ranges::find(tickets, ticket, &kernel::Ticket::lock_id) == tickets.end()) return milliseconds{0};
        if (head_of(lock.view, lock.now)->lock_id != ticket) return milliseconds::max();
        const auto& held = lock.view.record.held;
        return held ? std::max(held->lease.expires_at - lock.now, milliseconds{0}) : milliseconds{0};
    }

    [[nodiscard]] milliseconds next_poll() const {
        return ticks_.aligned(remote_.clock().boottime(), longest_sleep - polling_step);
    }

    /// The head of the queue is known now, so that a release takes one round trip.
    void remember(const LockName& name, const SeenLock& lock) {
        if (lock.view.moved || !lock.view.moved_tickets.empty()) return;
        KnownLock known{lock.value, lock.view};
        // A release predicts the head of the queue alone, so drop the tickets of other watches.
        if (known.view.tickets.size() > 1) known.view.tickets = {*head_of(lock.view, lock.now)};
        locks_.remember(name, std::move(known));
    }

    Remote& remote_;
    LockCache<KnownLock>& locks_;
    PubSub pubsub_;
    const base::Interrupt interrupt_{};
    const PollTicks ticks_;
    std::unordered_map<std::string, std::set<std::uint64_t>> listeners_{};  ///< Watches by channel.
    std::set<std::uint64_t> called_{};  ///< Something was announced to them since they were looked at.
};

}  // namespace

std::unique_ptr<WakeSource> make_wake_source(Remote& remote, LockCache<KnownLock>& locks) {
    return std::make_unique<RedisWakeSource>(remote, locks);
}

}  // namespace holdfast::stores::redis
