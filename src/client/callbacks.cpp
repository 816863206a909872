#include "client/callbacks.hpp"

#include "base/os_error.hpp"
#include "base/thread.hpp"

#include <chrono>
#include <system_error>
#include <utility>

namespace holdfast::client {
namespace {

/// How long a callback may keep the next one waiting before another thread takes over. Small beside the margin that a
/// deadline has for the scheduler, and long enough that a crowd of quick callbacks starts no crowd of threads.
constexpr std::chrono::milliseconds relief_after{10};

}  // namespace

void CallbackQueue::push(std::function<void()> callback) {
    const std::scoped_lock lock(mutex_);
    callbacks_.push_back(std::move(callback));
}

void CallbackQueue::run() {
    std::unique_lock lock(mutex_);
    if (!is_running_) run(lock);
}

void CallbackQueue::finish() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return !is_running_; });
    run(lock);
}

void CallbackQueue::run(std::unique_lock<std::mutex>& lock) {
    is_running_ = true;
    while (!callbacks_.empty()) {
        const auto callback = std::move(callbacks_.front());
        callbacks_.pop_front();
        lock.unlock();
        callback();
        lock.lock();
    }
    is_running_ = false;
    idle_.notify_all();
}

CallbackThreads::~CallbackThreads() {
    {
        const std::scoped_lock lock(mutex_);
        is_ending_ = true;
        for (std::jthread& thread : threads_) thread.request_stop();
    }
    threads_.clear();
}

Result<void> CallbackThreads::start() {
    const std::scoped_lock lock(mutex_);
    if (!threads_.empty()) return {};
    try {
        start_thread(Role::first);
    } catch (const std::system_error& error) {
        return std::unexpected(base::os_error(error.code().value(), "start a thread that tells of a loss"));
    }
    return {};
}

void CallbackThreads::post(std::shared_ptr<CallbackQueue> queue) {
    const std::scoped_lock lock(mutex_);
    posted_.push_back(std::move(queue));
    // Wake all: a single one could be the relief thread, which waits for something else.
    changed_.notify_all();
    start_relief_if_all_are_busy();
}

/// Under mutex_.
void CallbackThreads::start_thread(Role role) {
    threads_.push_back(
        base::start_thread("holdfast-tell", [this, role](const std::stop_token& stop) { serve(role, stop); }));
}

/// Under mutex_.
void CallbackThreads::start_relief_if_all_are_busy() {
    if (posted_.empty() || idle_ > 0 || has_relief_ || is_ending_) return;
    try {
        start_thread(Role::relief);
        has_relief_ = true;
    } catch (const std::system_error&) {
        // The threads that there are go on, and the next callback that is posted or taken tries again.
    }
}

void CallbackThreads::serve(Role role, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (role == Role::relief) {
        wait_while_others_make_progress(lock, stop);
        has_relief_ = false;
    }
    while (true) {
        ++idle_;
        const bool has_work = changed_.wait(lock, stop, [&] { return !posted_.empty(); });
        --idle_;
        if (!has_work) return;
        const auto queue = std::move(posted_.front());
        posted_.pop_front();
        ++taken_;
        start_relief_if_all_are_busy();
        lock.unlock();
        queue->run();
        lock.lock();
    }
}

/// Under `lock`. Returns when nothing is left to do, or nothing was taken for a while.
void CallbackThreads::wait_while_others_make_progress(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
    std::uint64_t seen = 0;
    do {
        seen = taken_;
        changed_.wait_for(lock, stop, relief_after, [] { return false; });
    } while (!posted_.empty() && seen != taken_ && !stop.stop_requested());
}

}  // namespace holdfast::client
