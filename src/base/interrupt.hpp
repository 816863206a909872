#pragma once

#include "base/fd.hpp"

#include <chrono>
#include <span>

namespace holdfast::base {

/// Ends the sleep of one thread that also waits for descriptors.
class Interrupt {
public:
    Interrupt();

    /// Ends the sleep that is going on, or the next one. From any thread.
    void raise() const;

    /// Sleeps until one of `descriptors` can be read, `most` has passed, or `raise` is called. Negative descriptors are
    /// passed over.
    void sleep(std::span<const int> descriptors, std::chrono::milliseconds most) const;

    /// For a thread that sleeps in a call of its own: can be read once `raise` was called, until `clear` is. Negative
    /// if the process had no descriptor left.
    [[nodiscard]] int fd() const { return event_.get(); }
    void clear() const;

private:
    Fd event_;
};

}  // namespace holdfast::base
