#include "holdfast/clock.hpp"

#include "values/small_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace holdfast {
namespace {

using std::chrono::milliseconds;

milliseconds read_clock(clockid_t id) {
    timespec time{};
    if (clock_gettime(id, &time) != 0) std::abort();  // Without a clock nothing here can be judged.
    return std::chrono::floor<milliseconds>(std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec});
}

class HostClock final : public Clock {
public:
    [[nodiscard]] Instant wall() const override { return Instant{read_clock(CLOCK_REALTIME)}; }
    [[nodiscard]] Boottime boottime() const override { return Boottime{read_clock(CLOCK_BOOTTIME)}; }
    [[nodiscard]] std::string boot_id() const override {
        static const std::string id = [] {
            std::string line = small_file("/proc/sys/kernel/random/boot_id").value_or("");
            line.erase(std::min(line.find('\n'), line.size()));
            return line;
        }();
        return id;
    }
};

}  // namespace

std::string to_rfc3339(Instant instant) {
    const auto day = std::chrono::floor<std::chrono::days>(instant);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss time{instant - day};
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
                       time.minutes().count(), time.seconds().count(), time.subseconds().count());
}

const Clock& host_clock() {
    static const HostClock clock;
    return clock;
}

ManualClock::ManualClock(Instant wall) : wall_ms_(wall.time_since_epoch().count()) {}

Instant ManualClock::wall() const { return Instant{milliseconds{wall_ms_}}; }
Boottime ManualClock::boottime() const { return Boottime{milliseconds{boot_ms_}}; }
std::string ManualClock::boot_id() const { return "manual-boot-" + std::to_string(boots_); }

void ManualClock::advance(milliseconds time) {
    wall_ms_ += time.count();
    boot_ms_ += time.count();
}

void ManualClock::step_wall(milliseconds step) { wall_ms_ += step.count(); }

void ManualClock::reboot() {
    ++boots_;
    boot_ms_ = 0;
}

}  // namespace holdfast
