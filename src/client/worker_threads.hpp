#pragma once

#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>

namespace holdfast::client {

/// Runs tasks that may block: calls to a store, and the user's code.
///
/// One thread is enough as long as nothing blocks. A task gets another one when no task was taken for as long as it may
/// wait: `relieve` starts it, and it ends when nothing was left to do for a while. Times are real: a thread that
/// blocks does so whatever a clock says that is moved by hand.
///
/// May be used from any thread. They end with this object, when what was posted has been done.
class WorkerThreads {
public:
    struct Task {
        std::function<void()> run;
        std::chrono::milliseconds patience;  ///< How long it may wait for a thread.
        /// Runs on the caller of `relieve` when the process can have no thread for it.
        bool is_urgent = false;
    };

    WorkerThreads() = default;
    WorkerThreads(const WorkerThreads&) = delete;
    WorkerThreads& operator=(const WorkerThreads&) = delete;
    /// Waits for tasks that run.
    ~WorkerThreads();

    /// Starts the first thread, without which nothing runs. An error if the process can have no more threads.
    [[nodiscard]] Result<void> start();

    /// Has `task` run soon.
    void post(Task task);

    struct Relief {
        std::chrono::milliseconds next;     ///< When to look again, unless something is posted before.
        std::function<void()> to_run_here;  ///< Empty unless an urgent task can have no thread.
    };
    /// Starts a thread for a task that has waited too long.
    [[nodiscard]] Relief relieve();

private:
    struct Worker {
        std::jthread thread{};
        bool has_ended = false;
    };

    void start_thread();
    void serve(Worker& self, const std::stop_token& stop);

    std::mutex mutex_;  ///< Guards everything below.
    std::condition_variable_any changed_;
    std::multimap<Boottime, Task> posted_;  ///< By when they must have a thread, in real time.
    Boottime taken_at_{};                   ///< When the last of them was.
    std::size_t idle_ = 0;                  ///< Threads that take a task when they next have the mutex.
    std::list<Worker> workers_;
};

}  // namespace holdfast::client
