#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace holdfast::server {

/// A few threads for calls that block: those of the store.
class Workers {
public:
    using Job = std::move_only_function<void()>;

    Workers(std::size_t threads, std::size_t most_waiting);
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;
    /// Lets the jobs that run come to their end; those that wait are dropped.
    ~Workers();

    /// False, and `job` is not run, if too many wait.
    [[nodiscard]] bool run(Job job);

private:
    void work(const std::stop_token& stop);

    const std::size_t most_waiting_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Job> jobs_{};  ///< Guarded by mutex_.
    std::vector<std::jthread> threads_{};
};

}  // namespace holdfast::server
