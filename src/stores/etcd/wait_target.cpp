#include "stores/etcd/wait_target.hpp"

#include "base/real_clock.hpp"
#include "stores/common/sealed.hpp"

#include <algorithm>
#include <iterator>

namespace holdfast::stores::etcd {
namespace {

using std::chrono::milliseconds;

/// The operations of one look, below etcd's limit: a lock costs two and each of its tickets one.
constexpr std::size_t most_reads = 120;

constexpr std::size_t most_predictions = 1024;
/// How long a prediction is valid, in real time.
constexpr milliseconds just_now{100};

/// A ticket deep in a queue.
struct DeepTicket {
    std::size_t watch = 0;  ///< Its index.
    LockName name;
    std::uint64_t number = 0;
};

/// The keys of the tickets right before `tickets`. Empty where there is none any more.
Result<std::vector<std::optional<std::string>>> tickets_before(Remote& remote, std::span<const DeepTicket> tickets,
                                                               base::CallBudget& budget) {
    const Keys& keys = remote.keys();
    std::vector<std::optional<std::string>> before(tickets.size());
    std::vector<std::size_t> open(tickets.size());
    for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
    // First a short range before it, so that etcd need not read all of a long queue.
    for (std::uint64_t back = std::uint64_t{1} << 16U; !open.empty(); back <<= 4U) {
        const auto is_all = [&](std::size_t i) { return back == 0 || back >= tickets[i].number; };
        Txn txn;
        for (const std::size_t i : open) {
            const auto& [watch, name, number] = tickets[i];
            txn.get({.keys = {keys.ticket(name, is_all(i) ? 0 : number - back), keys.ticket(name, number)},
                     .limit = 1,
                     .without_values = true,
                     .last_first = true});
        }
        const auto answer = remote.read(txn, budget);
        if (!answer) return std::unexpected(answer.error());
        if (answer->txn.found.size() < open.size())
            return fail(Errc::store_unavailable, "etcd did not answer everything");
        std::vector<std::size_t> still_open;
        for (std::size_t n = 0; n < open.size(); ++n) {
            const auto& found = answer->txn.found[n].keys;
            if (!found.empty())
                before[open[n]] = found.front().key;
            else if (!is_all(open[n]))
                still_open.push_back(open[n]);
        }
        open = std::move(still_open);
    }
    return before;
}

/// Completes the target of `waiter` from the lock's tickets, which are in order. Returns the number of its ticket if
/// tickets before it may not have been read.
std::optional<std::uint64_t> complete(WaitTarget& target, const Remote& remote, const BatchView& view,
                                      const LockView& lock, const LockId& waiter, const Moment& moment) {
    const LockName& name = lock.record.name;
    const auto is_live = [&](const kernel::Ticket& ticket) { return ticket.expires_at > moment.now; };
    const auto own = std::ranges::find(lock.tickets, waiter, &kernel::Ticket::lock_id);
    const auto head = std::ranges::find_if(lock.tickets, is_live);
    if (own == lock.tickets.end() || !is_live(*own)) {
        target.is_due = true;
    } else if (view.is_deep(name, own->number)) {
        target.watched.only_deletes = true;
        return own->number;
    } else if (head == own) {
        const auto next = std::next(own);
        if (next != lock.tickets.end() && !view.is_deep(name, next->number))
            target.next_ticket = view.ticket(name, next->number);
        target.waiters = lock.waiters;
        const auto& held = lock.record.held;
        const Instant opens = held ? held->lease.expires_at + remote.node_clock().margin() : moment.now;
        target.is_due = opens <= moment.now;
        target.look_again = time_until(opens, moment);
    } else {
        // Only the ticket before it: a lock that is freed must not wake every waiter.
        target.watched = {remote.keys().ticket(name, std::prev(own)->number), true};
        const auto last = std::ranges::max_element(lock.tickets.begin(), own, {}, &kernel::Ticket::expires_at);
        target.look_again = time_until(last->expires_at, moment);
    }
    return std::nullopt;
}

/// One look at the locks of some watches, which are in the order of their locks.
class Look {
public:
    Look(Remote& remote, std::span<const Watch* const> watches)
        : remote_(remote), watches_(watches), wanted_(wanted_for(watches)), view_(remote.keys(), wanted_) {}

    /// One target for each watch.
    [[nodiscard]] Result<std::vector<Result<WaitTarget>>> targets(base::CallBudget& budget) {
        auto moment = remote_.look(view_, budget);
        if (!moment) return std::unexpected(moment.error());
        const auto exists = remote_.exists(view_);
        if (!exists) return std::unexpected(exists.error());
        std::vector<Result<WaitTarget>> targets;
        auto lock = wanted_.begin();
        std::optional<Result<LockView>> found;
        for (const Watch* watch : watches_) {
            if (lock->name != watch->name) {
                ++lock;
                found.reset();
            }
            if (*exists && !found) found = read(*lock, *moment, budget);
            if (found && !*found) {
                targets.emplace_back(std::unexpected(found->error()));
                continue;
            }
            WaitTarget& target = *targets.emplace_back(
                WaitTarget{.watched = {remote_.keys().record(watch->name)}, .revision = view_.revision()});
            if (!found) continue;
            target.seq = (*found)->record.seq;
            if (const auto& held = (*found)->record.held) target.lease = held->lease.lock_id;
            if (!watch->ticket) continue;
            if (const auto number = complete(target, remote_, view_, **found, *watch->ticket, *moment))
                deep_.push_back({targets.size() - 1, watch->name, *number});
        }
        if (auto completed = complete_deep(targets, budget); !completed) return std::unexpected(completed.error());
        return targets;
    }

private:
    static std::vector<Wanted> wanted_for(std::span<const Watch* const> watches) {
        std::vector<Wanted> wanted;
        for (const Watch* watch : watches) {
            if (wanted.empty() || wanted.back().name != watch->name) wanted.push_back({.name = watch->name});
            if (!watch->ticket) continue;
            wanted.back().depth = 1;
            wanted.back().own_tickets.push_back(*watch->ticket);
        }
        return wanted;
    }

    Result<LockView> read(const Wanted& lock, Moment& moment, base::CallBudget& budget) {
        auto found = remote_.judged(view_, lock, moment, budget);
        if (found) std::ranges::sort(found->tickets, {}, &kernel::Ticket::number);
        return found;
    }

    /// Finds the tickets right before those that are not near the head of the queue.
    Result<void> complete_deep(std::vector<Result<WaitTarget>>& targets, base::CallBudget& budget) {
        const auto before = tickets_before(remote_, deep_, budget);
        if (!before) return std::unexpected(before.error());
        for (std::size_t i = 0; i < deep_.size(); ++i) {
            WaitTarget& target = *targets[deep_[i].watch];
            target.is_due = !(*before)[i];
            target.watched.key = (*before)[i].value_or("");
        }
        return {};
    }

    Remote& remote_;
    const std::span<const Watch* const> watches_;
    const std::vector<Wanted> wanted_;
    BatchView view_;
    std::vector<DeepTicket> deep_{};
};

/// How many of `watches`, which are in the order of their locks, fit into one look; at least one.
std::size_t fitting_watches(std::span<const Watch* const> watches) {
    std::size_t reads = 0;
    std::size_t count = 0;
    for (const Watch* watch : watches) {
        const bool is_next_lock = count == 0 || watches[count - 1]->name != watch->name;
        reads += is_next_lock ? 3 : 1;
        if (count > 0 && reads > most_reads) break;
        ++count;
    }
    return count;
}

}  // namespace

std::vector<Result<WaitTarget>> read_wait_targets(Remote& remote, std::span<const Watch> watches,
                                                  base::CallBudget& budget) {
    std::vector<const Watch*> ordered;
    for (const Watch& watch : watches) ordered.push_back(&watch);
    std::ranges::stable_sort(ordered, {}, [](const Watch* watch) -> const LockName& { return watch->name; });
    std::vector<Result<WaitTarget>> targets(watches.size());
    std::optional<Error> failure;
    for (std::span<const Watch* const> rest = ordered; !rest.empty();) {
        const auto some = rest.first(fitting_watches(rest));
        rest = rest.subspan(some.size());
        // Wait only once for a cluster that cannot be reached.
        auto found = failure ? std::unexpected(*failure) : Look(remote, some).targets(budget);
        if (!found) failure = found.error();
        for (std::size_t i = 0; i < some.size(); ++i)
            targets[static_cast<std::size_t>(some[i] - watches.data())] =
                found ? std::move((*found)[i]) : std::unexpected(*failure);
    }
    return targets;
}

std::optional<WaitTarget> predict_wait_target(Remote& remote, const LockName& name, const LockId& waiter,
                                              TakenTicket taken) {
    if (!taken.record || taken.queue.keys.size() < taken.queue.count) return std::nullopt;
    const std::vector<Wanted> wanted{{.name = name, .depth = 1}};
    BatchView view(remote.keys(), wanted);
    TxnAnswer answer{.succeeded = true, .revision = taken.revision, .store_was_there = true};
    answer.found.resize(2);
    if (taken.meta) answer.found[0].keys.push_back(std::move(*taken.meta));
    answer.found[1].keys.push_back(std::move(*taken.record));
    answer.found.push_back(std::move(taken.queue));
    if (!view.take(std::move(answer))) return std::nullopt;
    auto found = view.view_of(wanted.front(), taken.moment, remote.node_clock().tolerance(taken.moment));
    if (!found || view.may_have_ended(taken.moment)) return std::nullopt;
    std::ranges::sort(found->tickets, {}, &kernel::Ticket::number);
    WaitTarget target{.seq = found->record.seq, .watched = {remote.keys().record(name)}, .revision = view.revision()};
    if (complete(target, remote, view, *found, waiter, taken.moment)) return std::nullopt;
    return target;
}

bool has_lease(const LockId& lease, const std::string& stored_record, const LockName& name) {
    const auto record = unsealed_record(bytes_of(stored_record), name, Instant::max());
    return record && record->value.held && record->value.held->lease.lock_id == lease;
}

bool is_its_turn(const LockId& waiter, const std::string& stored_record, const LockName& name) {
    // Any time will do, since leases are not judged here.
    const auto record = unsealed_record(bytes_of(stored_record), name, Instant::max());
    return !record || !record->value.held || record->value.held->lease.lock_id == waiter;
}

void WaitPredictions::remember(const LockId& waiter, WaitTarget target) {
    const std::scoped_lock lock(mutex_);
    if (waiters_.size() >= most_predictions) waiters_.clear();
    waiters_.insert_or_assign(waiter, Prediction{std::move(target), base::real_clock().boottime()});
}

std::optional<WaitTarget> WaitPredictions::take(const LockId& waiter) {
    const std::scoped_lock lock(mutex_);
    const auto found = waiters_.find(waiter);
    if (found == waiters_.end()) return std::nullopt;
    Prediction prediction = std::move(found->second);
    waiters_.erase(found);
    if (base::real_clock().boottime() - prediction.since > just_now) return std::nullopt;
    return std::move(prediction.target);
}

}  // namespace holdfast::stores::etcd
