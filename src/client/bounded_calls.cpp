#include "client/bounded_calls.hpp"

#include "base/thread.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

namespace holdfast::client {

using std::chrono::milliseconds;

BoundedCalls::~BoundedCalls() {
    for (Worker& worker : workers_) worker.thread.request_stop();
}

bool BoundedCalls::is_stuck() const {
    const std::scoped_lock lock(mutex_);
    return given_up_ > 0;
}

bool BoundedCalls::start(std::function<void()> call) {
    std::unique_lock lock(mutex_);
    auto worker = std::ranges::find_if(workers_, [](const Worker& each) { return !each.call; });
    if (worker == workers_.end()) {
        if (workers_.size() == most_threads_) return false;
        worker = workers_.emplace(workers_.end());
        try {
            worker->thread = base::start_thread(
                "holdfast-call", [this, &self = *worker](const std::stop_token& stop) { serve(self, stop); });
        } catch (const std::system_error&) {
            workers_.erase(worker);
            lock.unlock();
            call();
            return true;
        }
    }
    worker->call = std::move(call);
    changed_.notify_all();
    return true;
}

bool BoundedCalls::returns(std::function<void()> call, Deadline until, const Clock& clock) {
    struct State {
        bool returned = false;
        bool given_up = false;
    };
    // Shared, because a call that was given up finishes after this function.
    const auto state = std::make_shared<State>();
    const bool began = start([this, state, call = std::move(call)] {
        call();
        const std::scoped_lock lock(mutex_);
        state->returned = true;
        if (state->given_up) --given_up_;
        changed_.notify_all();
    });
    if (!began) return false;
    std::unique_lock lock(mutex_);
    // In slices, because a timer does not count suspended time.
    while (!state->returned && !until.passed(clock))
        changed_.wait_for(lock, std::min(until.remaining(clock), milliseconds{1000}), [&] { return state->returned; });
    state->given_up = !state->returned;
    if (state->given_up) ++given_up_;
    return state->returned;
}

void BoundedCalls::serve(Worker& self, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return static_cast<bool>(self.call); })) {
        lock.unlock();
        self.call();
        lock.lock();
        self.call = nullptr;
        changed_.notify_all();
    }
}

}  // namespace holdfast::client
