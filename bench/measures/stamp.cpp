// stamp FILE: what a holder does in the hand-over measure. Appends when it began and when it ended.

#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

namespace {

long long now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

}  // namespace

int main(int, char** argv) {
    const long long begin = now_ns();
    const int file = open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC);
    char line[64];
    // The writing itself is part of the hold, not of the hand-over.
    const int length = std::snprintf(line, sizeof line, "%lld %lld\n", begin, now_ns());
    return write(file, line, static_cast<size_t>(length)) == length ? 0 : 1;
}
