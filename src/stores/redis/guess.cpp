#include "stores/redis/guess.hpp"

#include <algorithm>

namespace holdfast::stores::redis {
namespace {

using std::chrono::milliseconds;

/// Of each generation.
constexpr std::size_t most_locks = 4096;

constexpr milliseconds oldest_sight{60'000};
constexpr milliseconds longest_trip{20};
constexpr milliseconds most_ahead{100};
constexpr milliseconds most_behind{8};

}  // namespace

Memory::Lock Memory::guess(const LockName& name) {
    const std::scoped_lock lock(mutex_);
    for (const Locks* locks : {&newer_, &older_})
        if (const auto found = locks->find(name.text()); found != locks->end()) return found->second;
    return {{}, kernel::blank(name)};
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

void ServerClock::saw(Instant time, Boottime sent, Boottime received) {
    const std::scoped_lock lock(mutex_);
    seen_ = Seen{time, sent, received - sent};
}

std::optional<Instant> ServerClock::on_arrival() const {
    const Boottime now = host_clock().boottime();
    const std::scoped_lock lock(mutex_);
    if (!seen_ || now - seen_->sent > oldest_sight) return std::nullopt;
    // The server read its clock after the request had left, so this is never behind. One for what both clocks cut off.
    return seen_->time + (now - seen_->sent) + milliseconds{1} + std::min(seen_->trip, longest_trip);
}

Window ServerClock::window_for(Instant guess) { return {guess - most_ahead, guess + most_behind}; }

bool is_sound_guess(std::span<const Memory::Lock> guesses, std::span<const holdfast::Reply> replies,
                    std::span<const Change> changes, Instant now) {
    const auto is_too_late = [&](const Memory::Lock& lock) {
        // Nor is the clock behind an event that it has shown already.
        return lock.record.changed_at > now || (lock.record.held && lock.record.held->lease.expires_at <= now);
    };
    return !changes.empty() && std::ranges::none_of(guesses, is_too_late) &&
           std::ranges::all_of(replies, &holdfast::Reply::has_value);
}

}  // namespace holdfast::stores::redis
