#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace holdfast::client {

/// One thing at a time, so that nothing on it needs a lock: the one thread of the daemon, or the turns that the calls
/// of an `AsyncStore` take on the threads of its store. Nothing on it may block.
class Loop {
public:
    using Work = std::move_only_function<void()>;
    /// Destroying it cancels the call. Only on the loop.
    using Timer = std::shared_ptr<void>;

    virtual ~Loop() = default;
    /// Runs `work` on the loop, later. May be called from any thread.
    virtual void post(Work work) = 0;
    /// Only on the loop.
    [[nodiscard]] virtual Timer after(std::chrono::milliseconds time, Work work) = 0;
};

}  // namespace holdfast::client
