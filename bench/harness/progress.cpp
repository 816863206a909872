#include "harness/progress.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <unistd.h>

namespace holdfast::bench {
namespace {

/// Of the program so far.
double seconds() {
    static const auto begin = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool is_terminal() {
    static const bool is = isatty(STDERR_FILENO) == 1;
    return is;
}

}  // namespace

void show_progress(const std::string& what) {
    const double now = seconds();
    if (is_terminal()) fmt::print(stderr, "\r\033[K{:4.0f} s  {}", now, what);
    std::fflush(stderr);
}

void end_progress(std::string_view what) {
    fmt::print(stderr, "{}{:4.0f} s  {}: done\n", is_terminal() ? "\r\033[K" : "", seconds(), what);
}

}  // namespace holdfast::bench
