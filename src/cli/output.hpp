#pragma once

#include "json/value.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// How much to say, and how.
struct Style {
    bool json = false;
    bool shell = false;  ///< Standard output is for eval.
    bool quiet = false;
    bool verbose = false;
    bool terminal = false;  ///< Standard output is one: tables are aligned there.
    bool colour = false;
    std::size_t columns = 0;  ///< Of that terminal; 0 where nobody knows.
};

enum class Colour { none, green, yellow, red, bold };

/// One line of a table; the colour is that of the second cell's meaning.
struct Row {
    std::vector<std::string> cells{};
    Colour colour = Colour::none;
};

/// Standard output, and notes on standard error. What goes to standard output is kept until `flush`, so
/// that a document is written whole or not at all.
class Output {
public:
    explicit Output(Style style) : style_(style) {}

    [[nodiscard]] const Style& style() const { return style_; }

    /// One line on standard output.
    void line(std::string_view text);
    /// Whether any line was, also if it is written already.
    [[nodiscard]] bool has_lines() const { return has_lines_; }
    /// One JSON document on standard output.
    void document(const json::Value& value) { line(value.written()); }
    /// Aligned under `head` on a terminal, and cut to its width; whole, tab-separated and without `head` elsewhere.
    void table(const std::vector<std::string>& head, const std::vector<Row>& rows);
    [[nodiscard]] std::string coloured(std::string_view text, Colour colour) const;

    /// Whether to say that all went well: to a person at a terminal, or when asked with --verbose. Cron would send a
    /// mail.
    [[nodiscard]] bool tells_success() const;
    /// Standard error, unless --quiet.
    void note(std::string_view text) const;
    /// The same, if it can be written soon: a full pipe that nobody reads must not stop the process that holds a
    /// lease. Long text is cut.
    void note_if_writable(std::string_view text) const;
    /// Standard error, always.
    static void warn(std::string_view text);

    /// Writes what was kept. 0, or the errno of the first failure, which also later calls return.
    [[nodiscard]] int flush();
    /// Whether standard output is a pipe that nobody reads any more.
    [[nodiscard]] static bool nobody_reads();

private:
    Style style_;
    std::string kept_{};
    bool has_lines_ = false;
    int failed_ = 0;
};

}  // namespace holdfast::cli
