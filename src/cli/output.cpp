#include "cli/output.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <unistd.h>

namespace holdfast::cli {
namespace {

/// 0 or errno.
int write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(fd, text.data(), text.size());
        if (written < 0 && errno != EINTR) return errno;
        if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

/// Columns that `text` takes up, good enough for names: one for each code point.
std::size_t width(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string_view code_of(Colour colour) {
    switch (colour) {
        case Colour::none: return "";
        case Colour::green: return "\x1b[32m";
        case Colour::yellow: return "\x1b[33m";
        case Colour::red: return "\x1b[31m";
        case Colour::bold: return "\x1b[1m";
    }
    return "";
}

}  // namespace

void Output::line(std::string_view text) {
    kept_ += text;
    kept_ += '\n';
    has_lines_ = true;
}

void Output::table(const std::vector<std::string>& head, const std::vector<Row>& rows) {
    if (!style_.terminal) {
        for (const Row& row : rows) {
            std::string text;
            for (const std::string& cell : row.cells) text += (text.empty() ? "" : "\t") + (cell.empty() ? "-" : cell);
            line(text);
        }
        return;
    }
    std::vector<std::size_t> widths;
    for (const std::string& title : head) widths.push_back(width(title));
    for (const Row& row : rows)
        for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], width(row.cells[i]));
    const auto aligned = [&](const std::vector<std::string>& cells, Colour colour, std::size_t which) {
        std::string text;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            text += i == which ? coloured(cells[i], colour) : cells[i];
            if (i + 1 < cells.size()) text.append(widths[i] - width(cells[i]) + 2, ' ');
        }
        line(text);
    };
    aligned(head, Colour::none, head.size());
    for (const Row& row : rows) aligned(row.cells, row.colour, 1);
}

std::string Output::coloured(std::string_view text, Colour colour) const {
    if (!style_.colour || colour == Colour::none) return std::string(text);
    return std::string(code_of(colour)) + std::string(text) + "\x1b[0m";
}

bool Output::tells_success() const { return style_.verbose || isatty(STDERR_FILENO) != 0; }

void Output::note(std::string_view text) const {
    if (!style_.quiet) warn(text);
}

void Output::warn(std::string_view text) {
    // When standard error is closed there is nobody left to tell.
    static_cast<void>(write_all(STDERR_FILENO, std::string(text) + "\n"));
}

bool Output::nobody_reads() {
    pollfd out{STDOUT_FILENO, 0, 0};
    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

int Output::flush() {
    if (failed_ == 0) failed_ = write_all(STDOUT_FILENO, kept_);
    kept_.clear();
    return failed_;
}

}  // namespace holdfast::cli
