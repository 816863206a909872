#include "propagations.hpp"

#include <memory>
#include <utility>

namespace cockpit {
namespace {

/// A step brings the other dashboards of the project up to date. Each is a transaction of its own, behind the fence.
holdfast::EditWrite note_in_others(const PropagationOrder& order, int step) {
    const std::string note =
        "\n[" + order.dashboard + ": step " + std::to_string(step) + " of " + std::to_string(order.steps) + "]";
    return [note, &order](holdfast::FencedDatabase& database) -> holdfast::Result<void> {
        const auto written = database.run(
            "UPDATE dashboards SET text = text || $1, version = version + 1, saved_by = $2, "
            "saved_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE project = $3 AND id <> $4",
            {note, order.by, order.project, order.dashboard});
        if (!written) return std::unexpected(written.error());
        return {};
    };
}

}  // namespace

holdfast::Result<std::string> Propagations::start(holdfast::EditGuard& guard, const PropagationOrder& order) {
    const auto locks = holdfast::ProjectLocks::of(order.project);
    if (!locks) return std::unexpected(locks.error());
    const std::string job = holdfast::LockId::random().text();
    auto propagation = guard.propagate(*locks, {job, order.by}, url_);
    if (!propagation) return std::unexpected(propagation.error());

    // The lock is held, so the former job of this project has ended; its thread is joined without the mutex, which it
    // may need for its last word.
    std::jthread former;
    {
        const std::scoped_lock lock(mutex_);
        former = std::exchange(threads_[order.project], {});
    }
    if (former.joinable()) former.join();
    const std::scoped_lock lock(mutex_);
    progress_[order.project] = Progress{.job = job, .by = order.by, .steps = order.steps};
    auto moved = std::make_shared<holdfast::Propagation>(std::move(*propagation));
    threads_[order.project] =
        std::jthread([this, moved, order](const std::stop_token& stop) { run(stop, std::move(*moved), order); });
    return job;
}

std::optional<Progress> Propagations::progress(const std::string& project) {
    const std::scoped_lock lock(mutex_);
    const auto found = progress_.find(project);
    return found == progress_.end() ? std::nullopt : std::optional(found->second);
}

void Propagations::tell(const std::string& project, const std::function<void(Progress&)>& change) {
    const std::scoped_lock lock(mutex_);
    change(progress_[project]);
}

void Propagations::run(const std::stop_token& stop, holdfast::Propagation propagation, const PropagationOrder& order) {
    holdfast::Result<void> result{};
    for (int step = 1; result && step <= order.steps; ++step) {
        {
            std::unique_lock lock(mutex_);
            (void)stopped_.wait_for(lock, stop, order.step_time, [] { return false; });
        }
        if (stop.stop_requested()) result = holdfast::fail(holdfast::Errc::store_unavailable, "the sample was stopped");
        if (result) result = propagation.step(note_in_others(order, step));
        if (result) tell(order.project, [&](Progress& progress) { progress.step = step; });
    }
    const auto finished = propagation.finish();
    if (result) result = finished;
    tell(order.project, [&](Progress& progress) {
        progress.state = result ? Progress::State::done : Progress::State::failed;
        if (!result) progress.error = result.error();
    });
}

}  // namespace cockpit
