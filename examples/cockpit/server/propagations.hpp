#pragma once

#include "holdfast/edit.hpp"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace cockpit {

/// How a propagation goes.
struct Progress {
    enum class State { running, done, failed };

    State state = State::running;
    std::string job{};
    std::string by{};
    int step = 0;
    int steps = 0;
    std::optional<holdfast::Error> error{};
};

/// What to propagate, and how long it takes.
struct PropagationOrder {
    std::string project{};
    std::string dashboard{};  ///< From which.
    std::string by{};
    int steps = 5;
    std::chrono::milliseconds step_time{600};
};

/// The propagations that this server runs: at most one for each project, each on a thread of its own.
class Propagations {
public:
    /// `url`: the database of the sample.
    explicit Propagations(std::string url) : url_(std::move(url)) {}

    /// Takes the lock before it returns the job, so that a second one is refused at once with `lock_conflict`.
    [[nodiscard]] holdfast::Result<std::string> start(holdfast::EditGuard& guard, const PropagationOrder& order);
    /// Of the newest one; empty if this server never ran one for that project.
    [[nodiscard]] std::optional<Progress> progress(const std::string& project);

private:
    void run(const std::stop_token& stop, holdfast::Propagation propagation, const PropagationOrder& order);
    void tell(const std::string& project, const std::function<void(Progress&)>& change);

    std::string url_;
    std::mutex mutex_;  ///< Guards what follows.
    std::condition_variable_any stopped_{};
    std::map<std::string, Progress> progress_{};
    std::map<std::string, std::jthread> threads_{};
};

}  // namespace cockpit
