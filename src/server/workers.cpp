#include "server/workers.hpp"

#include <utility>

namespace holdfast::server {

Workers::Workers(std::size_t threads, std::size_t most_waiting) : most_waiting_(most_waiting) {
    for (std::size_t i = 0; i < threads; ++i)
        threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

Workers::~Workers() {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
}

bool Workers::run(Job job) {
    {
        const std::scoped_lock lock(mutex_);
        if (jobs_.size() >= most_waiting_) return false;
        jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
    return true;
}

void Workers::work(const std::stop_token& stop) {
    while (true) {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return !jobs_.empty(); }) || stop.stop_requested()) return;
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        job();
    }
}

}  // namespace holdfast::server
