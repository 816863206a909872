#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace holdfast::client {

/// Calls of one hold to the user's code. They run one at a time and in order, on any of the threads.
///
/// May be used from any thread.
class CallbackQueue {
public:
    void push(std::function<void()> callback);

    /// Runs what is queued, unless another thread is doing so: that one runs the rest as well.
    void run();

    /// Runs what is queued, after waiting for a callback that another thread runs. When it returns the queue is empty
    /// and nothing runs, if nobody pushes any more. Not from one of its own callbacks.
    void finish();

    /// Something is queued or runs.
    [[nodiscard]] bool is_busy() const;

private:
    void run(std::unique_lock<std::mutex>& lock);

    mutable std::mutex mutex_;  ///< Guards everything below.
    std::condition_variable idle_;
    std::deque<std::function<void()>> callbacks_;
    bool is_running_ = false;
};

}  // namespace holdfast::client
