#pragma once

#include "base/fd.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <signal.h>
#include <stop_token>
#include <thread>

namespace holdfast::guards::run {

/// Signals are blocked as long as this lives, and are read from a descriptor instead, but for those that the caller
/// ignores. Made before any thread, so that every thread inherits it.
class Signals {
public:
    enum class Take {
        /// Blocks all signals that can be blocked, for a supervisor. Works as PID 1, too, where signals without a
        /// handler are dropped unless blocked.
        all,
        /// SIGTERM, SIGINT and SIGHUP, for a command that can be asked to end. All others act as before.
        requests_to_end,
    };

    explicit Signals(Take take = Take::all);
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;
    ~Signals();

    [[nodiscard]] int descriptor() const { return descriptor_.get(); }
    /// The next signal that has arrived, without waiting.
    [[nodiscard]] std::optional<int> next() const;
    /// From now on only SIGCHLD is read; the rest stays blocked. For a process to which another one passes signals on.
    void listen_to_children_only();
    /// The signal mask from before, with which a child starts.
    [[nodiscard]] const sigset_t& mask_before() const { return before_; }

private:
    Take take_;
    sigset_t before_{};
    struct sigaction child_before_{};
    base::Fd descriptor_;
};

/// Whether this signal asks a program to end.
[[nodiscard]] bool is_stop_signal(int signal);

/// Stops `target` (0: our whole group) as Ctrl-Z would, and returns when it was continued. At once where nobody could
/// do that: the kernel stops neither the first process of a namespace nor a group without a shell that controls it.
void stop_like_the_terminal(pid_t target);

class OuterLink;

/// While it lives, the first stop signal asks `source` to stop: where there is no child to pass it on to.
class StopListener {
public:
    /// A second signal ends the process at once, with 128+n, for when a store hangs.
    StopListener(const Signals& signals, std::stop_source source);
    /// For signals that the outer process passes on, and its death. Only the first is read.
    StopListener(OuterLink& outer, std::stop_source source);
    ~StopListener();
    StopListener(const StopListener&) = delete;
    StopListener& operator=(const StopListener&) = delete;

    /// The signal that has arrived, or 0. One that came before this call counts, also while the thread that waits for
    /// signals has had no processor to read it: what is decided on the answer may otherwise ignore it.
    [[nodiscard]] int heard();
    /// Ends the listening. The signal that came, if one did; SIGKILL if the outer process died.
    [[nodiscard]] std::optional<int> finish();

private:
    /// What may come after the first signal.
    enum class Second { ends_the_process, is_not_read };

    StopListener(int descriptor, std::function<std::optional<int>()> next, Second second, std::stop_source source);

    void listen(const std::stop_token& end);
    void read_signal();
    void end();

    const int descriptor_;
    const Second second_;
    std::stop_source source_;
    base::Fd wake_;
    std::mutex mutex_{};  ///< Guards the two below: a signal that was read is known to everybody.
    std::function<std::optional<int>()> next_;
    int heard_ = 0;
    std::jthread thread_;
};

}  // namespace holdfast::guards::run
