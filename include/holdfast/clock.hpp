#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace [[gnu::visibility("default")]] holdfast {

/// Milliseconds of UTC, the resolution of everything that Holdfast stores or prints. Of whose clock, the comment of
/// each field says: two hosts' clocks are never compared.
using Instant = std::chrono::sys_time<std::chrono::milliseconds>;

/// Marks time points of CLOCK_BOOTTIME, which neither jumps nor stops in suspend. It means nothing on
/// another host or after a reboot, so it is never stored alone.
struct BootClock {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<BootClock>;
    static constexpr bool is_steady = true;
};
using Boottime = BootClock::time_point;

/// For people and JSON: `2026-11-15T14:02:11.042Z`.
[[nodiscard]] std::string to_rfc3339(Instant instant);

/// The time as a host tells it. Passed in wherever time is needed, so that a test can let it pass, step
/// it back, or reboot. May be called from any thread.
///
/// A program needs one only for tests: everything defaults to `host_clock()`. A clock that is passed to a store must
/// outlive the store and everything that is held on it.
class Clock {
public:
    virtual ~Clock() = default;

    /// The wall clock: shown to people and the base of tokens. Operators and NTP move it.
    [[nodiscard]] virtual Instant wall() const = 0;

    /// Time since boot, suspend included: what deadlines are counted on.
    [[nodiscard]] virtual Boottime boottime() const = 0;

    /// Changes with every boot of the host; tells whether two boot times can be compared.
    [[nodiscard]] virtual std::string boot_id() const = 0;

    /// The time by which a store judges although it has a clock of its own. Absent, except in a clock that
    /// is moved by hand: with one, time passes on a real server, too.
    [[nodiscard]] virtual std::optional<Instant> judges() const { return std::nullopt; }
};

/// The clock of this host. Lives for ever.
[[nodiscard]] const Clock& host_clock();

/// A clock that moves only when told to, for tests. Leases, deadlines and waits follow it; what must end although
/// nobody moves it, such as a call to a server that says nothing, also has a limit in real time.
class ManualClock final : public Clock {
public:
    explicit ManualClock(Instant wall = Instant{std::chrono::milliseconds{1'700'000'000'000}});

    [[nodiscard]] Instant wall() const override;
    [[nodiscard]] Boottime boottime() const override;
    [[nodiscard]] std::string boot_id() const override;
    [[nodiscard]] std::optional<Instant> judges() const override { return wall(); }

    /// Lets time pass on both clocks.
    void advance(std::chrono::milliseconds time);
    /// Moves the wall clock alone, as an operator or NTP does.
    void step_wall(std::chrono::milliseconds step);
    /// Starts a new boot: the boot time begins again, the wall clock goes on.
    void reboot();

private:
    std::atomic<std::int64_t> wall_ms_;
    std::atomic<std::int64_t> boot_ms_{0};
    std::atomic<std::uint64_t> boots_{1};
};

/// When a call gives up, on the caller's boot time. A value: it is compared with a clock, not bound to one.
///
/// A point in time and not a length, so that it can be handed down through several calls without growing. It counts
/// time in which the host was suspended.
struct Deadline {
    Boottime at = Boottime::max();

    [[nodiscard]] static Deadline never() { return {}; }
    [[nodiscard]] static Deadline in(const Clock& clock, std::chrono::milliseconds time) {
        const Boottime now = clock.boottime();
        return time >= Boottime::max() - now ? never() : Deadline{now + time};
    }
    [[nodiscard]] bool passed(const Clock& clock) const { return clock.boottime() >= at; }
    /// Zero once it has passed.
    [[nodiscard]] std::chrono::milliseconds remaining(const Clock& clock) const {
        const Boottime now = clock.boottime();
        return now >= at ? std::chrono::milliseconds{0} : at - now;
    }
};

}  // namespace holdfast
