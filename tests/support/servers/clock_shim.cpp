// Preloaded into a real server: shifts the wall clock that it sees by what stands in the file that
// HOLDFAST_CLOCK_OFFSET names (milliseconds, eight bytes), and leaves monotonic clocks alone. That is what an
// operator or NTP does to a host, without doing it to this one. Does not reach programs that ask the kernel
// without libc, as Go's do.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

constexpr std::int64_t per_second = 1'000'000'000;

using Offset = const std::atomic<std::int64_t>;

Offset* mapped() {
    const char* file = std::getenv("HOLDFAST_CLOCK_OFFSET");
    const int fd = file == nullptr ? -1 : open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return nullptr;
    void* const memory = mmap(nullptr, sizeof(Offset), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return memory == MAP_FAILED ? nullptr : static_cast<Offset*>(memory);
}

std::int64_t offset_ns() {
    static Offset* const offset = mapped();
    return offset == nullptr ? 0 : offset->load(std::memory_order_relaxed) * 1'000'000;
}

void shift(timespec& time) {
    const std::int64_t sum = time.tv_sec * per_second + time.tv_nsec + offset_ns();
    time.tv_sec = sum / per_second;
    time.tv_nsec = sum % per_second;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
    const auto status = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) shift(*time);
    return status;
}

int gettimeofday(timeval* time, void* zone) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    *time = {now.tv_sec, now.tv_nsec / 1000};
    if (zone != nullptr) *static_cast<struct timezone*>(zone) = {};
    return 0;
}

time_t time(time_t* result) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (result != nullptr) *result = now.tv_sec;
    return now.tv_sec;
}
}
