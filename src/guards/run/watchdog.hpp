#pragma once

#include "base/fd.hpp"
#include "holdfast/clock.hpp"
#include "holdfast/error.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>
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
    enum class Kind : std::uint32_t { lease, child, doom, reaping, done };
    Kind kind = Kind::done;
    pid_t group = 0;
    std::int64_t term_at_ms = 0;
    std::int64_t kill_at_ms = 0;
    std::array<char, 36> mark{};
};

/// A process of its own that ends the child's group in time when the supervisor cannot: killed, stopped,
/// or stuck. It hears through a pipe; the end of the pipe without `done` means that the supervisor died.
///
/// Started before the store is opened, when there is little to be copied by the fork and nothing to be let go of.
class Watchdog {
public:
    /// Forks it. From then on it holds nothing of the supervisor but its end of the pipe.
    [[nodiscard]] static Result<Watchdog> start(std::chrono::milliseconds grace);

    Watchdog(Watchdog&& other) noexcept : pid_(std::exchange(other.pid_, -1)), pipe_(std::move(other.pipe_)) {}
    Watchdog& operator=(Watchdog&& other) noexcept;
    /// Dismisses it, if nobody has. One that was told of a child must be dismissed before.
    ~Watchdog();

    [[nodiscard]] pid_t pid() const { return pid_; }
    /// Where a child announces itself before it becomes another program. Closed by exec.
    [[nodiscard]] int pipe() const { return pipe_.get(); }
    /// False when somebody has killed it meanwhile.
    [[nodiscard]] bool is_alive() const;

    /// What the child's processes are marked with. Comes first.
    void expect_family_of(std::string_view mark) const;
    void expect(const Doom& doom) const;
    /// The child's pid is about to become free: its number means nothing until `guard` is called again.
    void reaping() const;
    void guard(pid_t group) const;
    /// Nothing is left to watch: the watchdog ends. Without effect the second time, as is `join`.
    void dismiss();
    /// Waits until it is gone.
    void join();

private:
    Watchdog(pid_t pid, base::Fd pipe) : pid_(pid), pipe_(std::move(pipe)) {}
    void send(const WatchMessage& message) const;

    pid_t pid_;  ///< -1 when it is gone.
    base::Fd pipe_;
};

}  // namespace holdfast::guards::run
