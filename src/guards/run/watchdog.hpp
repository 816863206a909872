#pragma once

#include "base/fd.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <sys/types.h>

namespace holdfast::guards::run {

/// When the child's group gets SIGTERM, and when SIGKILL, unless something better is heard before.
struct Doom {
    Boottime term_at = Boottime::max();
    Boottime kill_at = Boottime::max();

    [[nodiscard]] bool operator==(const Doom&) const = default;
};

/// What the watchdog is told, one write each, small enough to be atomic. `Kind` decides what counts.
struct WatchMessage {
    enum class Kind : std::uint32_t { child, doom, reaping, done };
    Kind kind = Kind::done;
    pid_t group = 0;
    std::int64_t term_at_ms = 0;
    std::int64_t kill_at_ms = 0;
};

/// A process of its own that ends the child's group in time when the supervisor cannot: killed, stopped,
/// or stuck. It hears through a pipe; the end of the pipe without `done` means that the supervisor died.
class Watchdog {
public:
    /// Forks it. From then on it holds nothing of the supervisor but its end of the pipe.
    [[nodiscard]] static Result<Watchdog> start(const std::string& lock_id, std::chrono::milliseconds grace);

    [[nodiscard]] pid_t pid() const { return pid_; }
    /// Where a child announces itself before it becomes another program. Closed by exec.
    [[nodiscard]] int pipe() const { return pipe_.get(); }

    void expect(const Doom& doom) const;
    /// The child's pid is about to become free: its number means nothing until `guard` is called again.
    void reaping() const;
    void guard(pid_t group) const;
    /// Nothing is left to watch: the watchdog ends.
    void dismiss();
    /// Waits until it is gone.
    void join() const;

private:
    Watchdog(pid_t pid, base::Fd pipe) : pid_(pid), pipe_(std::move(pipe)) {}
    void send(const WatchMessage& message) const;

    pid_t pid_;
    base::Fd pipe_;
};

}  // namespace holdfast::guards::run
