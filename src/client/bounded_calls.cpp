#include "client/bounded_calls.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// More calls that hang will not bring an answer.
constexpr std::size_t most_workers = 8;

}  // namespace

BoundedCalls::~BoundedCalls() {
    for (Worker& worker : workers_) worker.thread.request_stop();
}

bool BoundedCalls::is_stuck() const {
    const std::scoped_lock lock(mutex_);
    return std::ranges::any_of(workers_, &Worker::is_overdue);
}

bool BoundedCalls::finishes(std::function<void()> work, Deadline until, const Clock& clock) {
    std::unique_lock lock(mutex_);
    // One whose call came back after all can be used again.
    auto worker = std::ranges::find_if(workers_, [](const Worker& each) { return !each.work; });
    if (worker == workers_.end()) {
        if (workers_.size() == most_workers) return false;
        worker = workers_.emplace(workers_.end());
        try {
            worker->thread = std::jthread([this, &self = *worker](const std::stop_token& stop) { serve(self, stop); });
        } catch (const std::system_error&) {
            // No thread can be had. Calls that come back are the rule, so it is made here.
            workers_.erase(worker);
            lock.unlock();
            work();
            return true;
        }
    }
    worker->work = std::move(work);
    changed_.notify_all();
    // In slices, because a timer does not count suspended time.
    while (worker->work && !until.passed(clock))
        changed_.wait_for(lock, std::min(until.remaining(clock), milliseconds{1000}), [&] { return !worker->work; });
    worker->is_overdue = static_cast<bool>(worker->work);
    return !worker->is_overdue;
}

void BoundedCalls::serve(Worker& self, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return static_cast<bool>(self.work); })) {
        lock.unlock();
        self.work();
        lock.lock();
        self.work = nullptr;
        self.is_overdue = false;
        changed_.notify_all();
    }
}

}  // namespace holdfast::client
