#pragma once

#include "base/fd.hpp"

#include <optional>
#include <signal.h>
#include <stop_token>
#include <thread>

namespace holdfast::guards::run {

/// All signals that can be are blocked as long as this lives, and those that matter are read from a
/// descriptor, but for those that the caller ignores. Works as PID 1 too, where signals without a handler would be
/// dropped unless blocked. Made before any thread, so that every thread inherits it.
class Signals {
public:
    Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;
    ~Signals();

    [[nodiscard]] int descriptor() const { return descriptor_.get(); }
    /// The next one that has come, without waiting.
    [[nodiscard]] std::optional<int> next() const;
    /// What was blocked before: what a child starts with.
    [[nodiscard]] const sigset_t& mask_before() const { return before_; }

private:
    sigset_t before_{};
    struct sigaction child_before_{};
    base::Fd descriptor_;
};

/// Whether this signal asks a program to end.
[[nodiscard]] bool is_stop_signal(int signal);

/// While it lives, the first stop signal asks `source` to stop: for the time before there is a child.
class StopListener {
public:
    StopListener(const Signals& signals, std::stop_source source);

    /// Ends the listening. The signal that came, if one did.
    [[nodiscard]] std::optional<int> finish();

private:
    const Signals& signals_;
    std::optional<int> heard_;  ///< Written by the thread, read after it has been joined.
    base::Fd wake_;
    std::jthread thread_;
};

}  // namespace holdfast::guards::run
