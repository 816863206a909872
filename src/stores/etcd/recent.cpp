#include "stores/etcd/recent.hpp"

#include <algorithm>
#include <variant>

namespace holdfast::stores::etcd {
namespace {

/// Of each generation.
constexpr std::size_t most_locks = 1024;
/// So many new locks in a row, and the next may be new. A wrong guess costs the cluster an entry of its log.
constexpr std::size_t enough_new = 4;

/// What comes of it does not depend on who waits.
bool ignores_queue(const Request& request) {
    return std::holds_alternative<Renew>(request) || std::holds_alternative<Prune>(request);
}

}  // namespace

bool Recent::guess(BatchView& view, std::span<const Request> requests, const KeyValue& meta) {
    // A Check may be granted without a change, and then no comparison would notice that the guess was wrong.
    if (std::ranges::any_of(requests, [](const Request& r) { return std::holds_alternative<Check>(r); })) return false;
    const std::vector<Wanted>& wanted = view.wanted();
    std::vector<Assumed> assumed(wanted.size());
    std::vector<const Request*> only(wanted.size());
    for (const Request& request : requests) {
        const auto lock = std::ranges::lower_bound(wanted, name_of(request), {}, &Wanted::name);
        const auto at = static_cast<std::size_t>(lock - wanted.begin());
        if (!ignores_queue(request)) assumed[at].is_quiet = true;
        // What the first of several changes, the others need to know.
        only[at] = wanted[at].is_asked_for_once() ? &request : nullptr;
    }
    const std::scoped_lock guard(mutex_);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (auto known = only[i] == nullptr ? std::nullopt : take_succession(*only[i])) {
            assumed[i] = std::move(*known);
            continue;
        }
        const Lock* known = find(wanted[i].name);
        if (known != nullptr && (known->is_quiet || !assumed[i].is_quiet)) {
            assumed[i].record = known->record;
        } else if (known != nullptr || !wanted[i].may_create || new_in_a_row_ < enough_new) {
            return false;
        }
    }
    // Used once: whoever writes next remembers it again.
    for (const Wanted& lock : wanted) erase(lock.name);
    view.assume(meta, std::move(assumed));
    return true;
}

void Recent::remember(const LockName& name, KeyValue record, bool is_quiet) {
    const std::scoped_lock guard(mutex_);
    if (newer_.size() >= most_locks) {
        older_ = std::move(newer_);
        newer_.clear();
    }
    newer_.insert_or_assign(name, Lock{std::move(record), is_quiet});
}

void Recent::forget(const LockName& name) {
    const std::scoped_lock guard(mutex_);
    erase(name);
}

void Recent::expect_release(const LockId& holder, Succession succession) {
    const std::scoped_lock guard(mutex_);
    if (successions_.size() >= most_locks) successions_.clear();
    successions_.insert_or_assign(holder, std::move(succession));
}

std::optional<Assumed> Recent::take_succession(const Request& request) {
    const auto* release = std::get_if<Release>(&request);
    const auto found = release == nullptr ? successions_.end() : successions_.find(release->as.lock_id);
    if (found == successions_.end()) return std::nullopt;
    Assumed assumed{.record = std::move(found->second.record), .place = std::move(found->second.next)};
    successions_.erase(found);
    return assumed;
}

void Recent::learn(const BatchView& view) {
    const std::scoped_lock guard(mutex_);
    for (const Wanted& lock : view.wanted()) {
        if (!lock.may_create) continue;
        new_in_a_row_ = view.is_new(lock.name) ? new_in_a_row_ + 1 : 0;
    }
}

const Recent::Lock* Recent::find(const LockName& name) const {
    for (const Locks* locks : {&newer_, &older_})
        if (const auto found = locks->find(name); found != locks->end()) return &found->second;
    return nullptr;
}

void Recent::erase(const LockName& name) {
    newer_.erase(name);
    older_.erase(name);
}

}  // namespace holdfast::stores::etcd
