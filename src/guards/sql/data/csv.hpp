#pragma once

#include "guards/sql/data/rows.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::guards::data {

/// Reads CSV as RFC 4180 has it, in pieces of any size, and keeps one row at a time. The first record names the
/// columns. `,,` is NULL and `,"",` is an empty text. Lines end in LF or CRLF.
///
/// Nothing is guessed: a quote inside of a field without quotes, text behind a closing quote, a CR without LF and a row
/// with another number of fields are errors.
class CsvReader {
public:
    /// `path` is for messages. Both must outlive this.
    CsvReader(std::string_view path, RowSink& sink) : path_(path), sink_(&sink) {}

    /// The next piece. The text is UTF-8 without NUL; the caller has checked that.
    [[nodiscard]] Result<void> feed(std::string_view piece);
    /// After the last piece.
    [[nodiscard]] Result<void> finish();

private:
    enum class State {
        record_begins,
        field_begins,
        plain,       ///< In a field without quotes.
        quoted,      ///< In one with quotes.
        quote_seen,  ///< Behind a quote in it: it was the last one, or the first of two.
        cr_seen,     ///< Behind a CR that a LF must follow.
    };
    struct Field {
        std::size_t end = 0;  ///< In `text_`; it begins where the one before it ends.
        bool is_null = false;
    };

    [[nodiscard]] Result<void> take_special(char c);
    [[nodiscard]] Result<void> end_field(bool is_null);
    [[nodiscard]] Result<void> end_record();
    [[nodiscard]] Result<void> take_header();
    [[nodiscard]] Result<void> add(std::string_view text);
    [[nodiscard]] std::unexpected<Error> bad(std::string_view why) const { return refuse(path_, line_, why); }

    std::string_view path_;
    RowSink* sink_;
    State state_ = State::record_begins;
    std::size_t line_ = 1;
    std::size_t record_line_ = 1;  ///< Where the record began.
    std::size_t quote_line_ = 1;   ///< Where the last quoted field began.
    bool at_begin_ = true;
    std::string text_{};  ///< All fields of the record, one after the other.
    std::vector<Field> fields_{};
    std::vector<Cell> cells_{};
    std::size_t columns_ = 0;  ///< 0 before the first record has ended.
};

}  // namespace holdfast::guards::data
