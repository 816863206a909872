#pragma once

#include "base/real_clock.hpp"
#include "holdfast/clock.hpp"

#include <algorithm>

namespace holdfast::base {

/// How long a call may go on: until the caller's deadline, and never longer than a bounded stretch of real time without
/// an answer. The second limit is for callers without a deadline and for clocks that a test moves by hand: neither may
/// wait for ever for a silent server.
class CallBudget {
public:
    static constexpr std::chrono::milliseconds longest_silence{10'000};

    CallBudget(const Clock& clock, Deadline deadline, std::chrono::milliseconds silence = longest_silence)
        : clock_(&clock), deadline_(deadline), silence_(silence), silence_ends_(Deadline::in(real_clock(), silence)) {}
    /// A limit in real time, for calls without a deadline of a caller.
    explicit CallBudget(std::chrono::milliseconds time) : CallBudget(real_clock(), Deadline::never(), time) {}

    /// Never negative.
    [[nodiscard]] std::chrono::milliseconds left() const {
        return std::min(deadline_.remaining(*clock_), silence_ends_.remaining(real_clock()));
    }
    [[nodiscard]] bool over() const { return left() == std::chrono::milliseconds{0}; }
    /// For poll(2).
    [[nodiscard]] int left_ms() const { return static_cast<int>(left().count()); }

    /// The server is there: the silence begins again.
    void answered() { silence_ends_ = Deadline::in(real_clock(), silence_); }

private:
    const Clock* clock_;
    Deadline deadline_;
    std::chrono::milliseconds silence_;
    Deadline silence_ends_;
};

}  // namespace holdfast::base
