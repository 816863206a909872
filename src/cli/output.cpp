#include "cli/output.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <numeric>
#include <poll.h>
#include <unistd.h>

namespace holdfast::cli {
namespace {

/// 0 or errno.
int write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(fd, text.data(), text.size());
        if (written < 0 && errno == EAGAIN) {
            // Another program that has the same file made it non-blocking.
            pollfd ready{fd, POLLOUT, 0};
            poll(&ready, 1, -1);
            continue;
        }
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

/// Its first columns, the last of which is `…` if there are more than `columns`.
std::string cut(const std::string& text, std::size_t columns) {
    if (width(text) <= columns) return text;
    std::size_t end = 0;
    for (std::size_t left = columns; end < text.size(); ++end)
        if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && left-- == 1) break;
    return text.substr(0, end) + "…";
}

/// Columns between two cells.
constexpr std::size_t gap = 2;

/// Narrows the widest columns until all fit into `columns`. The first tells what a row is about, so it comes last; none
/// becomes narrower than its head, or than a few letters.
void narrow(std::vector<std::size_t>& widths, const std::vector<std::string>& head, std::size_t columns) {
    constexpr std::size_t fewest = 8;
    const auto total = [&] { return std::accumulate(widths.begin(), widths.end(), gap * (widths.size() - 1)); };
    const auto spare = [&](std::size_t i) {
        const std::size_t least = std::max(width(head[i]), fewest);
        return widths[i] > least ? widths[i] - least : 0;
    };
    while (total() > columns) {
        std::size_t widest = 0;
        for (std::size_t i = 1; i < widths.size(); ++i)
            if (spare(i) > 0 && (widest == 0 || widths[i] > widths[widest])) widest = i;
        if (spare(widest) == 0) return;
        --widths[widest];
    }
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
    if (style_.columns > 0) narrow(widths, head, style_.columns);
    const auto aligned = [&](const std::vector<std::string>& cells, Colour colour, std::size_t which) {
        std::string text;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const std::string cell = cut(cells[i], widths[i]);
            text += i == which ? coloured(cell, colour) : cell;
            if (i + 1 < cells.size()) text.append(widths[i] - width(cell) + gap, ' ');
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

void Output::note_if_writable(std::string_view text) const {
    // A terminal on which somebody else writes at the moment is writable soon.
    constexpr int moment_ms = 100;
    pollfd err{STDERR_FILENO, POLLOUT, 0};
    // A pipe that poll calls writable takes PIPE_BUF bytes without waiting.
    if (poll(&err, 1, moment_ms) > 0 && (err.revents & POLLOUT) != 0) note(text.substr(0, PIPE_BUF - 1));
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
