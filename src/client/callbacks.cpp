#include "client/callbacks.hpp"

#include <utility>

namespace holdfast::client {

void CallbackQueue::push(std::function<void()> callback) {
    const std::scoped_lock lock(mutex_);
    callbacks_.push_back(std::move(callback));
}

void CallbackQueue::run() {
    std::unique_lock lock(mutex_);
    if (!is_running_) run(lock);
}

bool CallbackQueue::is_busy() const {
    const std::scoped_lock lock(mutex_);
    return is_running_ || !callbacks_.empty();
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

}  // namespace holdfast::client
