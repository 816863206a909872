#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"
#include "holdfast/hold.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/request.hpp"
#include "holdfast/store.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace holdfast::client {
class AsyncCalls;
}

/// Locks without a thread for each call: every call returns at once, and its result is handed to a function.
/// `holdfast/asio.hpp` makes the same calls awaitable, for Boost.Asio and C++20 coroutines.
///
/// Threads. Requests that arrive while a batch is under way form the next batch, with those of all callers. One thread
/// calls the store, one keeps the time, and one serves the store's subscriptions. The holds on the same `Store` object
/// share them, so a thousand holds and a thousand waiters need three. One more comes while a call of the store takes
/// long, so that a lock which is stuck holds up no other.
///
/// Completion handlers. Each is called exactly once, on a thread of the library, and never from inside of the call that
/// it was given to. Those of one `AsyncStore` are called one after the other, so one that blocks delays them all. It
/// may make further calls and end holds, but not end its `AsyncStore`. An exception that leaves it ends the program.
namespace [[gnu::visibility("default")]] holdfast {

template <class T>
using CompletionHandler = std::move_only_function<void(Result<T> result)>;

class AsyncHold;

/// A grant, its credentials, and the moment before its request was sent, from which the holder counts.
struct Granted : Outcome {
    Boottime sent_at{};
    Credentials as;
};

/// The calls of a `Store`, without waiting for them.
///
/// Three endings, as everywhere: granted, refused, or `outcome_unknown`.
class AsyncStore {
public:
    /// Starts the threads; an error if the process can have no more. `store` must outlive it and its holds. Several on
    /// one store work, but gather no requests of each other.
    [[nodiscard]] static Result<AsyncStore> start(Store& store);

    AsyncStore(AsyncStore&&) noexcept;
    AsyncStore& operator=(AsyncStore&&) noexcept;
    /// Ends every wait, and waits until all handlers were called: those of waits with `cancelled`, the others with what
    /// the store says to them. Not from a handler. Its holds may be there longer; they then call the store themselves.
    ~AsyncStore();

    [[nodiscard]] Store& store() const;

    /// As `Store::apply`: decided at the deadline or not at all. What still waits for its batch then is not sent.
    void apply(std::vector<Request> requests, Deadline deadline, CompletionHandler<std::vector<Reply>> done);
    /// As `Store::apply_one`: renew, release, check, whatever is a request.
    void apply_one(Request request, Deadline deadline, CompletionHandler<Outcome> done);

    /// Takes a lock and does not renew it: in the fair queue for up to `wait`, or at once or not at all where that is
    /// zero. Refused as `hold` is. While an answer is missing it asks again, in the end under new credentials: use
    /// `Granted::as`.
    ///
    /// `cancel` ends it: then its place in the queue is given up and a grant is given back, before it is `cancelled`;
    /// `outcome_unknown` if the store could not be told.
    void acquire(Acquire request, std::chrono::milliseconds wait, std::stop_token cancel,
                 CompletionHandler<Granted> done);

    /// Takes a lock as the function `hold` does, with the same options and refusals, and renews it. Cancelled by
    /// `options.cancel`, as `acquire` is. Not by threads, so the order of locks is not checked. The observer must not
    /// block while the lock is asked for.
    void hold(LockName name, HoldOptions options, CompletionHandler<AsyncHold> done);

    /// As `Store::wait_for_change`: only a hint, except where the lock is handed over. `watch.stop` ends it, with
    /// `cancelled`.
    void wait_for_change(Watch watch, Deadline deadline, CompletionHandler<std::optional<HandedOn>> done);

private:
    [[gnu::visibility("hidden")]] explicit AsyncStore(std::shared_ptr<client::AsyncCalls> calls);

    std::shared_ptr<client::AsyncCalls> calls_;
};

/// A lock that is held, as a `Hold` is: renewed in the background with all others on its store, and told at once when
/// it is lost. Given back at the end without waiting for it.
class AsyncHold {
public:
    AsyncHold(AsyncHold&&) noexcept;
    AsyncHold& operator=(AsyncHold&&) noexcept;
    /// Has the lock given back, unless `release` was called. A failure goes to the observer.
    ~AsyncHold();

    /// Its token, deadline, lease, credentials, and what is known of a loss.
    [[nodiscard]] const Hold& hold() const { return *hold_; }
    [[nodiscard]] FencingToken token() const { return hold_->token(); }  ///< Give it along with every write.
    [[nodiscard]] std::stop_token lost() const { return hold_->lost(); }
    [[nodiscard]] std::optional<Error> loss() const { return hold_->loss(); }

    /// Begins to renew, where `HoldOptions::renew_from` left that to the caller.
    Result<void> start_renewing() { return hold_->start_renewing(); }

    /// Calls `done` when the hold is lost, with the reason; or with `cancelled` when that is asked to stop, or the hold
    /// is released or ends first.
    void wait_for_loss(std::stop_token cancel, std::move_only_function<void(Error why)> done) const;

    /// Stops renewing and gives the lock back, with the results of `Hold::release`. Afterwards the hold only tells what
    /// it was. Also from its observer and its stop callbacks.
    void release(CompletionHandler<void> done);

private:
    friend class client::AsyncCalls;
    [[gnu::visibility("hidden")]] AsyncHold(std::shared_ptr<client::AsyncCalls> calls, std::shared_ptr<Hold> hold);
    [[gnu::visibility("hidden")]] void end();

    std::shared_ptr<client::AsyncCalls> calls_;
    std::shared_ptr<Hold> hold_;
    std::stop_source over_;  ///< Released, or at its end.
    bool is_released_ = false;
};

}  // namespace holdfast
