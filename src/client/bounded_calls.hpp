#pragma once

#include "holdfast/clock.hpp"

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace holdfast::client {

/// Makes calls on threads of its own, so that a call that never returns does not block its caller: a write to a disk
/// that has failed, for example, can block for ever, whatever deadline it was given.
///
/// A thread whose call has returned is used again. There are at most as many threads as the constructor says: when so
/// many calls hang, another one would hang, too. May be used from any thread.
class BoundedCalls {
public:
    explicit BoundedCalls(std::size_t most_threads) : most_threads_(most_threads) {}
    BoundedCalls(const BoundedCalls&) = delete;
    BoundedCalls& operator=(const BoundedCalls&) = delete;
    /// Waits for calls that have not returned, since they use objects of their caller.
    ~BoundedCalls();

    /// What `call` returns, or nothing if it has not returned at `until`, or cannot begin. A call that is given up goes
    /// on by itself, and its value is dropped: `call` must own what it uses, or know that it outlives this object.
    template <class T>
    [[nodiscard]] std::optional<T> run(std::function<T()> call, Deadline until, const Clock& clock) {
        const auto answer = std::make_shared<std::optional<T>>();
        if (!returns([answer, call = std::move(call)] { answer->emplace(call()); }, until, clock)) return std::nullopt;
        return std::move(*answer);
    }

    /// True while a call that `run` gave up has not returned.
    [[nodiscard]] bool is_stuck() const;

private:
    struct Worker {
        std::function<void()> call{};  ///< Empty while the thread is idle.
        std::jthread thread{};
    };

    /// Begins `call` on another thread and returns. False, without a call, if all threads are busy. Where the process
    /// can have no more threads, `call` is made here: calls that return are the rule.
    [[nodiscard]] bool start(std::function<void()> call);
    [[nodiscard]] bool returns(std::function<void()> call, Deadline until, const Clock& clock);
    void serve(Worker& self, const std::stop_token& stop);

    const std::size_t most_threads_;
    mutable std::mutex mutex_;  ///< Guards everything below.
    std::condition_variable_any changed_;
    std::size_t given_up_ = 0;   ///< Calls of `run` that were given up and have not returned.
    std::list<Worker> workers_;  ///< Last, so that the threads end before what they use.
};

}  // namespace holdfast::client
