#include "stores/redis/guess.hpp"

#include <algorithm>

namespace holdfast::stores::redis {
namespace {

/// Of each generation.
constexpr std::size_t most_locks = 4096;

}  // namespace

Memory::Lock Memory::guess(const LockName& name) {
    const std::scoped_lock lock(mutex_);
    for (const Locks* locks : {&newer_, &older_})
        if (const auto found = locks->find(name.text()); found != locks->end()) return found->second;
    return {{}, LockView{.record = kernel::blank(name)}};
}

void Memory::remember(const LockName& name, Lock lock) {
    const std::scoped_lock guard(mutex_);
    if (newer_.size() >= most_locks) {
        older_ = std::move(newer_);
        newer_.clear();
    }
    newer_.insert_or_assign(name.text(), std::move(lock));
}

void Memory::forget(const LockName& name) {
    const std::scoped_lock lock(mutex_);
    newer_.erase(name.text());
    older_.erase(name.text());
}

bool is_sound_guess(std::span<const Memory::Lock> guesses, std::span<const holdfast::Reply> replies,
                    std::span<const Change> changes, Instant now) {
    const auto is_too_late = [&](const Memory::Lock& lock) {
        const kernel::Record& record = lock.view.record;
        const auto has_ended = [&](const kernel::Ticket& ticket) { return ticket.expires_at <= now; };
        // Nor is the clock behind an event that it has shown already.
        return record.changed_at > now || (record.held && record.held->lease.expires_at <= now) ||
               std::ranges::any_of(lock.view.tickets, has_ended);
    };
    return !changes.empty() && std::ranges::none_of(guesses, is_too_late) &&
           std::ranges::all_of(replies, &holdfast::Reply::has_value);
}

}  // namespace holdfast::stores::redis
