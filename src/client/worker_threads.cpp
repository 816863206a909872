#include "client/worker_threads.hpp"

#include "base/os_error.hpp"
#include "base/real_clock.hpp"
#include "base/thread.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace holdfast::client {
namespace {

using std::chrono::milliseconds;

/// After this a thread beyond the first ends.
constexpr milliseconds longest_idle{2000};

/// A thread that was started or woken needs a moment until it takes its task.
constexpr milliseconds moment_to_wake{5};

constexpr milliseconds nothing_waits{1000};

}  // namespace

WorkerThreads::~WorkerThreads() {
    {
        const std::scoped_lock lock(mutex_);
        for (Worker& worker : workers_) worker.thread.request_stop();
    }
    for (Worker& worker : workers_) worker.thread.join();
}

Result<void> WorkerThreads::start() {
    const std::scoped_lock lock(mutex_);
    if (!workers_.empty()) return {};
    try {
        start_thread();
    } catch (const std::system_error& error) {
        return std::unexpected(base::os_error(error.code().value(), "start a thread that tells of a loss"));
    }
    return {};
}

void WorkerThreads::post(Task task) {
    const std::scoped_lock lock(mutex_);
    const Boottime due = base::real_clock().boottime() + task.patience;
    posted_.emplace(due, std::move(task));
    changed_.notify_one();
}

WorkerThreads::Relief WorkerThreads::relieve() {
    const std::scoped_lock lock(mutex_);
    std::erase_if(workers_, [](const Worker& worker) { return worker.has_ended; });
    if (posted_.empty()) return {nothing_waits, nullptr};
    const auto first = posted_.begin();
    const Boottime now = base::real_clock().boottime();
    // Where others are taken meanwhile, nothing blocks: it only takes a while.
    const Boottime due = std::max(first->first, taken_at_ + first->second.patience);
    if (now < due) return {std::max(due - now, milliseconds{1}), nullptr};
    if (idle_ > 0) return {moment_to_wake, nullptr};
    try {
        start_thread();
    } catch (const std::system_error&) {
        const auto urgent = std::ranges::find_if(posted_, [](const auto& each) { return each.second.is_urgent; });
        if (urgent == posted_.end()) return {nothing_waits, nullptr};
        auto task = std::move(urgent->second.run);
        posted_.erase(urgent);
        return {milliseconds{0}, std::move(task)};
    }
    return {moment_to_wake, nullptr};
}

/// Under mutex_.
void WorkerThreads::start_thread() {
    Worker& worker = workers_.emplace_back();
    try {
        worker.thread =
            base::start_thread("holdfast-work", [this, &worker](const std::stop_token& stop) { serve(worker, stop); });
    } catch (const std::system_error&) {
        workers_.pop_back();
        throw;
    }
    ++idle_;
}

void WorkerThreads::serve(Worker& self, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    // Counted as idle already.
    while (true) {
        const bool has_work = changed_.wait_for(lock, stop, longest_idle, [&] { return !posted_.empty(); });
        if (!has_work) {
            const bool is_last =
                std::ranges::count_if(workers_, [](const Worker& each) { return !each.has_ended; }) == 1;
            if (is_last && !stop.stop_requested()) continue;
            self.has_ended = true;
            --idle_;
            return;
        }
        --idle_;
        auto task = std::move(posted_.begin()->second.run);
        posted_.erase(posted_.begin());
        taken_at_ = base::real_clock().boottime();
        lock.unlock();
        task();
        task = nullptr;
        lock.lock();
        ++idle_;
    }
}

}  // namespace holdfast::client
