#pragma once

#include "client/loop.hpp"
#include "client/renewer.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace holdfast::client {

/// A loop without a thread of its own: its work takes turns on the threads that renew the holds of a store. Time is
/// that of the store's clock.
class TurnLoop final : public Loop, public std::enable_shared_from_this<TurnLoop> {
public:
    /// `renewer` has its threads already.
    explicit TurnLoop(std::shared_ptr<Renewer> renewer, const Clock& clock)
        : clock_(clock), renewer_(std::move(renewer)) {}

    void post(Work work) override;
    [[nodiscard]] Timer after(std::chrono::milliseconds time, Work work) override;

    /// Runs a call that blocks, on another thread than the loop's. False after `close`.
    bool run(std::function<void()> call);
    /// For the last act of such a call: runs `work`, and what waits, on this thread unless the loop has one now. So an
    /// answer is handled where it arrived.
    void finish(Work work);

    /// Lets go of the threads, after which nothing runs any more. Only when nothing is left to be done, and not on one
    /// of the threads.
    void close();

private:
    class Alarm;

    [[nodiscard]] bool push(Work work);
    void take_turns() noexcept;
    const Clock& clock_;
    std::mutex mutex_;                  ///< Guards everything below.
    std::shared_ptr<Renewer> renewer_;  ///< Null once it is closed. Never copied: it must not end on its own threads.
    std::deque<Work> work_{};
    bool has_turn_ = false;  ///< A thread runs what waits, or was asked to.
};

}  // namespace holdfast::client
