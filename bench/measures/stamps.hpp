#pragma once

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

/// Processes or threads that hand a lock over to each other, in a call or in a command of their own.
namespace holdfast::bench {

/// For how long each holds the lock: long enough for all others to be in line.
inline constexpr long hold_ns = 5'000'000;

inline std::int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline void sleep_ns(long length) {
    const timespec time{0, length};
    nanosleep(&time, nullptr);
}

/// Beside the file of stamps: one byte for each hold that has begun.
inline std::string begun_beside(const std::string& stamps) { return stamps + ".begun"; }

inline long holds_begun(const std::string& stamps) {
    struct stat file{};
    return stat(begun_beside(stamps).c_str(), &file) == 0 ? static_cast<long>(file.st_size) : 0;
}

/// The client with the `count`th release stays away until the next one holds the lock: a client that returns while it
/// is being handed over would take it in passing where there is no line, and the others' waiting would not be seen. Not
/// for ever, since there may be nobody else.
inline void stay_away(const std::string& stamps, long count) {
    for (int i = 0; i < 500 && holds_begun(stamps) <= count; ++i) sleep_ns(500'000);
}

/// The file in which everybody says when. Open before anybody holds, so that opening it is no part of a hold.
class Stamps {
public:
    explicit Stamps(const char* path) : file_(opened(path)), begun_(opened(begun_beside(path).c_str())) {}
    Stamps(const Stamps&) = delete;
    Stamps& operator=(const Stamps&) = delete;
    ~Stamps() {
        close(file_);
        close(begun_);
    }

    /// The lock is held from now on; on return it is not yet given back.
    [[nodiscard]] bool hold(std::int64_t asked) const {
        const std::int64_t begin = now_ns();
        if (write(begun_, ".", 1) != 1) return false;
        sleep_ns(hold_ns);
        char line[96];
        const int length = std::snprintf(line, sizeof line, "%lld %lld %lld\n", static_cast<long long>(asked),
                                         static_cast<long long>(begin), static_cast<long long>(now_ns()));
        return write(file_, line, static_cast<std::size_t>(length)) == length;
    }

private:
    static int opened(const char* path) { return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600); }

    const int file_;
    const int begun_;
};

}  // namespace holdfast::bench
