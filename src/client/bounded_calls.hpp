#pragma once

#include "holdfast/clock.hpp"

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace holdfast::client {

/// Makes calls on threads of its own, so that a call that never returns does not take its caller with it: a disk that
/// has gone, for example, holds a write up for ever, whatever deadline it was given.
///
/// For one caller at a time.
class BoundedCalls {
public:
    BoundedCalls() = default;
    BoundedCalls(const BoundedCalls&) = delete;
    BoundedCalls& operator=(const BoundedCalls&) = delete;
    /// Waits for calls that have not returned: they use what their caller lent.
    ~BoundedCalls();

    /// What `call` returns, or nothing if it has not returned at `until`. It goes on by itself then, and what it
    /// returns later is dropped: `call` must own what it uses, or know that it outlives this object.
    template <class T>
    [[nodiscard]] std::optional<T> run(std::function<T()> call, Deadline until, const Clock& clock) {
        const auto answer = std::make_shared<std::optional<T>>();
        if (!finishes([answer, call = std::move(call)] { answer->emplace(call()); }, until, clock)) return std::nullopt;
        return std::move(*answer);
    }

    /// Whether a call has still not returned that was given up.
    [[nodiscard]] bool is_stuck() const;

private:
    struct Worker {
        std::function<void()> work{};  ///< Empty when it has nothing to do.
        bool is_overdue = false;       ///< Nobody waits for it any more.
        std::jthread thread{};
    };

    [[nodiscard]] bool finishes(std::function<void()> work, Deadline until, const Clock& clock);
    void serve(Worker& self, const std::stop_token& stop);

    mutable std::mutex mutex_;  ///< Guards what the workers have to do.
    std::condition_variable_any changed_;
    std::list<Worker> workers_;  ///< Last, so that they end before what they use. The list itself is the caller's.
};

}  // namespace holdfast::client
