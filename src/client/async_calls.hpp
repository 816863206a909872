#pragma once

#include "client/batcher.hpp"
#include "client/hold_core.hpp"
#include "client/turn_loop.hpp"
#include "holdfast/async.hpp"

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

namespace holdfast::client {

/// A call that waits for something, and that can be given up before. Only on the loop.
class PendingCall : public std::enable_shared_from_this<PendingCall> {
public:
    PendingCall() = default;
    PendingCall(const PendingCall&) = delete;
    PendingCall& operator=(const PendingCall&) = delete;
    virtual ~PendingCall() = default;

    virtual void start() = 0;
    /// Ends soon: as cancelled, unless its result is there already. May be called before `start`, and again.
    virtual void give_up() = 0;
};

/// Everything that an `AsyncStore` and its holds have under way. It takes turns on one loop. May be used from any
/// thread, except for what is said to be on the loop.
class AsyncCalls : public std::enable_shared_from_this<AsyncCalls> {
public:
    /// `renewer` is that of the store, and has its threads already.
    AsyncCalls(Store& store, std::shared_ptr<Renewer> renewer);

    [[nodiscard]] Store& store() const { return store_; }
    [[nodiscard]] Loop& loop() const { return *loop_; }
    [[nodiscard]] Batcher& batcher() { return batcher_; }  ///< On the loop.
    /// Has `requests` sent with the next batch. On the loop.
    void submit(std::vector<Request> requests, Deadline deadline, Batcher::Done done);

    /// Counts a call that is about to begin. False after `close`, when none can; only a hold can meet that.
    bool open();
    /// The last act of that call, on the loop, when its handler has returned.
    void count_ended();

    /// Starts a call that was counted.
    void start(std::shared_ptr<PendingCall> call);
    /// It has ended: on the loop, when its handler has returned.
    void ended(const std::shared_ptr<PendingCall>& call);

    /// Gives the lock of `hold` back: a call that was counted. `done` may be empty.
    void release(const std::shared_ptr<Hold>& hold, CompletionHandler<void> done);
    /// Makes a hold of what was granted. On the loop.
    void make_hold(const HoldOptions& options, Granted granted, CompletionHandler<AsyncHold>& done);

    /// Gives up every call, and waits until they have ended. Not on a thread of the library.
    void close();

private:
    struct Releasing;
    void run(std::function<void()> call, std::function<void()> after);
    void stop_renewing(const std::shared_ptr<Releasing>& releasing);
    void send_release(const std::shared_ptr<Releasing>& releasing);

    Store& store_;
    const std::shared_ptr<TurnLoop> loop_;
    BatchObserver unobserved_;
    Batcher batcher_;

    std::mutex mutex_;  ///< Guards the three below.
    std::condition_variable all_ended_;
    std::size_t open_ = 0;
    bool is_closed_ = false;

    // On the loop.
    std::set<std::shared_ptr<PendingCall>> calls_{};
    bool is_closing_ = false;
};

/// Has a call given up when its caller's stop token says so. Part of that call.
class GiveUpOnStop {
public:
    void watch(const std::stop_token& stop, AsyncCalls& calls, std::weak_ptr<PendingCall> call) {
        if (!stop.stop_possible()) return;
        on_stop_.emplace(stop, [&loop = calls.loop(), call = std::move(call)] {
            loop.post([call] {
                if (const auto self = call.lock()) self->give_up();
            });
        });
    }

private:
    std::optional<std::stop_callback<std::function<void()>>> on_stop_{};
};

/// The answer to a call with one request.
[[nodiscard]] Reply reply_in(const Applied& applied);

/// Calls a completion handler. It is over, and destroyed, when this returns.
template <class Handler, class Value>
void complete(Handler& handler, Value value) {
    auto once = std::exchange(handler, {});
    once(std::move(value));
}

}  // namespace holdfast::client
