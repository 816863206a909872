#include "cli/progress_line.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <unistd.h>

namespace holdfast::cli {

ProgressLine::ProgressLine(const Style& style) : shown_(!style.quiet && !style.json && isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::show(std::string_view text) const {
    if (shown_) fmt::print(stderr, "\r{}\x1b[K", text);
}

}  // namespace holdfast::cli
