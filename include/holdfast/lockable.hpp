#pragma once

#include "holdfast/error.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/store.hpp"

#include <chrono>
#include <optional>
#include <stdexcept>

namespace [[gnu::visibility("default")]] holdfast {

/// Thrown by `Lockable`, whose callers have no place for a `Result`.
class LockError final : public std::runtime_error {
public:
    explicit LockError(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
    [[nodiscard]] const Error& error() const { return error_; }

private:
    Error error_;
};

/// A lock as `std::scoped_lock`, `std::unique_lock` and `std::lock` want one: `std::scoped_lock both(web, database);`.
///
/// The lease is renewed like that of every `Hold`. Unlike a mutex it can be lost nevertheless: ask `hold().lost()`
/// while working, and give `hold().token()` to the resource. `unlock` cannot report a failure; the observer hears it.
///
/// For one thread at a time. `store` must outlive it.
class Lockable {
public:
    /// `options.wait` is for `lock`. 0 means for ever here: a mutex has no other way to wait.
    Lockable(Store& store, LockName name, HoldOptions options = {});

    /// Waits and takes it. Throws `LockError` where `hold` is refused.
    void lock();
    /// True if it was taken at once, and false if somebody else holds it. Throws `LockError` otherwise.
    [[nodiscard]] bool try_lock();
    /// True if it was taken within `wait`. Throws `LockError` as `try_lock` does.
    [[nodiscard]] bool try_lock_for(std::chrono::milliseconds wait);
    /// May be called only while it is locked.
    void unlock();

    /// May be called only while it is locked.
    [[nodiscard]] const Hold& hold() const { return *held_; }

private:
    [[nodiscard]] Result<void> take(std::chrono::milliseconds wait);

    Store& store_;
    LockName name_;
    HoldOptions options_;
    std::optional<Hold> held_{};
};

}  // namespace holdfast
