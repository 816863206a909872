#pragma once

#include "holdfast/error.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

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

private:
    void run(std::unique_lock<std::mutex>& lock);

    std::mutex mutex_;  ///< Guards everything below.
    std::condition_variable idle_;
    std::deque<std::function<void()>> callbacks_;
    bool is_running_ = false;
};

/// Threads for the user's code, which may block.
///
/// One thread is enough as long as no callback blocks. When something is posted and no thread is idle, another one is
/// started; it takes over if the others make no progress for some milliseconds. So there is never more than one thread
/// for each callback that blocks, and two besides. They end with this object. May be used from any thread.
class CallbackThreads {
public:
    CallbackThreads() = default;
    CallbackThreads(const CallbackThreads&) = delete;
    CallbackThreads& operator=(const CallbackThreads&) = delete;
    /// Waits for callbacks that run.
    ~CallbackThreads();

    /// Starts the first thread, without which nothing runs. An error if the process can have no more threads.
    [[nodiscard]] Result<void> start();

    /// Has `queue` run soon.
    void post(std::shared_ptr<CallbackQueue> queue);

private:
    enum class Role { first, relief };

    void start_thread(Role role);
    void start_relief_if_all_are_busy();
    void serve(Role role, const std::stop_token& stop);
    void wait_while_others_make_progress(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);

    std::mutex mutex_;  ///< Guards everything below.
    std::condition_variable_any changed_;
    /// Shared with the hold, which may be destroyed before a thread runs its queue.
    std::deque<std::shared_ptr<CallbackQueue>> posted_;
    std::uint64_t taken_ = 0;  ///< How many have been taken from `posted_`.
    std::size_t idle_ = 0;     ///< Threads that wait for something to do.
    bool has_relief_ = false;  ///< A thread watches whether the others make progress.
    bool is_ending_ = false;
    std::list<std::jthread> threads_;
};

}  // namespace holdfast::client
