#include "stores/etcd/optimistic.hpp"

#include <algorithm>
#include <variant>

namespace holdfast::stores::etcd {
namespace {

/// After so many new locks in a row the next is predicted to be new. A wrong prediction costs the cluster an entry of
/// its log.
constexpr std::size_t enough_new = 4;

/// True if the outcome does not depend on the queue.
bool ignores_queue(const Request& request) {
    return std::holds_alternative<Renew>(request) || std::holds_alternative<Prune>(request);
}

}  // namespace

bool Optimistic::predict(BatchView& view, std::span<const Request> requests, const KeyValue& meta) {
    // A Check may be granted without a change, and then no comparison would notice that the prediction was wrong.
    if (std::ranges::any_of(requests, [](const Request& r) { return std::holds_alternative<Check>(r); })) return false;
    const std::vector<Wanted>& wanted = view.wanted();
    if (std::ranges::any_of(wanted, &Wanted::repairs)) return false;
    std::vector<Assumed> assumed(wanted.size());
    std::vector<const Request*> only(wanted.size());
    for (const Request& request : requests) {
        const auto lock = std::ranges::lower_bound(wanted, name_of(request), {}, &Wanted::name);
        const auto at = static_cast<std::size_t>(lock - wanted.begin());
        if (!ignores_queue(request)) assumed[at].is_quiet = true;
        // Several requests for a lock need more of its queue than a prediction has.
        only[at] = wanted[at].is_asked_for_once() ? &request : nullptr;
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (auto known = only[i] == nullptr ? std::nullopt : take_hand_over(*only[i])) {
            assumed[i] = std::move(*known);
            continue;
        }
        auto known = locks_.find(wanted[i].name);
        if (known && (known->is_quiet || !assumed[i].is_quiet)) {
            assumed[i].record = std::move(known->record);
        } else if (known || !wanted[i].may_create || new_in_a_row_ < enough_new) {
            return false;
        }
    }
    // Forgotten until the change succeeds and remembers it again.
    for (const Wanted& lock : wanted) locks_.forget(lock.name);
    view.assume(meta, std::move(assumed));
    return true;
}

void Optimistic::remember(const LockName& name, KeyValue record, bool is_quiet) {
    locks_.remember(name, {std::move(record), is_quiet});
}

void Optimistic::forget(const LockName& name) { locks_.forget(name); }

void Optimistic::expect_release(const LockId& holder, HandOver hand_over) {
    const std::scoped_lock lock(mutex_);
    if (hand_overs_.size() >= most_locks) hand_overs_.clear();
    hand_overs_.insert_or_assign(holder, std::move(hand_over));
}

std::optional<Assumed> Optimistic::take_hand_over(const Request& request) {
    const auto* release = std::get_if<Release>(&request);
    if (release == nullptr) return std::nullopt;
    const std::scoped_lock lock(mutex_);
    const auto found = hand_overs_.find(release->as.lock_id);
    if (found == hand_overs_.end()) return std::nullopt;
    Assumed assumed{.record = std::move(found->second.record), .place = std::move(found->second.next)};
    hand_overs_.erase(found);
    return assumed;
}

void Optimistic::learn(const BatchView& view) {
    for (const Wanted& lock : view.wanted()) {
        if (!lock.may_create) continue;
        new_in_a_row_ = view.is_new(lock.name) ? new_in_a_row_ + 1 : 0;
    }
}

}  // namespace holdfast::stores::etcd
