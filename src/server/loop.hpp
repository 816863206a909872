#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace holdfast::server {

/// The one thread that all connections share. It never blocks, so nothing on it needs a lock.
class Loop {
public:
    using Work = std::move_only_function<void()>;
    /// Destroying it cancels the call. Only on the loop's thread.
    using Timer = std::shared_ptr<void>;

    virtual ~Loop() = default;
    /// Runs `work` on the loop's thread, later. May be called from any thread.
    virtual void post(Work work) = 0;
    /// Only on the loop's thread.
    [[nodiscard]] virtual Timer after(std::chrono::milliseconds time, Work work) = 0;
};

}  // namespace holdfast::server
