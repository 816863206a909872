#pragma once

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

/// What those do who hand a lock over to each other, be it in a call or in a command of their own.
namespace holdfast::bench {

/// For how long each holds the lock, and stays away after that. Long enough for all others to be in line: who comes
/// back while the lock is being handed over is no part of what is measured, nor is who takes it in passing.
inline constexpr long hold_ns = 5'000'000;

inline std::int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline void stay_away() {
    const timespec time{0, hold_ns};
    nanosleep(&time, nullptr);
}

/// The file in which everybody says when. Open before anybody holds, so that opening it is no part of a hold.
class Stamps {
public:
    explicit Stamps(const char* path) : file_(open(path, O_WRONLY | O_APPEND | O_CLOEXEC)) {}
    Stamps(const Stamps&) = delete;
    Stamps& operator=(const Stamps&) = delete;
    ~Stamps() { close(file_); }

    /// The lock is held from now on; on return it is not yet given back.
    [[nodiscard]] bool hold(std::int64_t asked) const {
        const std::int64_t begin = now_ns();
        stay_away();
        char line[96];
        const int length = std::snprintf(line, sizeof line, "%lld %lld %lld\n", static_cast<long long>(asked),
                                         static_cast<long long>(begin), static_cast<long long>(now_ns()));
        return write(file_, line, static_cast<std::size_t>(length)) == length;
    }

private:
    const int file_;
};

}  // namespace holdfast::bench
