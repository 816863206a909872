#include "holdfast/lockable.hpp"

#include <utility>

namespace holdfast {

using std::chrono::milliseconds;

Lockable::Lockable(Store& store, LockName name, HoldOptions options)
    : store_(store), name_(std::move(name)), options_(std::move(options)) {}

void Lockable::lock() {
    const milliseconds wait = options_.wait == milliseconds{0} ? HoldOptions::forever : options_.wait;
    if (const auto taken = take(wait); !taken) throw LockError(taken.error());
}

bool Lockable::try_lock() { return try_lock_for(milliseconds{0}); }

bool Lockable::try_lock_for(milliseconds wait) {
    const auto taken = take(wait);
    if (taken) return true;
    if (taken.error().code == Errc::lock_conflict || taken.error().code == Errc::timed_out) return false;
    throw LockError(taken.error());
}

void Lockable::unlock() { held_.reset(); }

Result<void> Lockable::take(milliseconds wait) {
    HoldOptions options = options_;
    options.wait = wait;
    auto taken = holdfast::hold(store_, name_, options);
    if (!taken) return std::unexpected(std::move(taken.error()));
    held_.emplace(std::move(*taken));
    return {};
}

}  // namespace holdfast
