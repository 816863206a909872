#include "guards/sql/data/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::guards::data {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

/// Where a run of ordinary characters ends.
std::size_t end_of_plain(std::string_view text, std::size_t from) {
    while (from < text.size()) {
        const char c = text[from];
        if (c == ',' || c == '\n' || c == '"' || c == '\r') break;
        ++from;
    }
    return from;
}

}  // namespace

Result<void> CsvReader::feed(std::string_view piece) {
    if (at_begin_ && !piece.empty()) {
        if (piece.starts_with(byte_order_mark)) piece.remove_prefix(byte_order_mark.size());
        at_begin_ = false;
    }
    for (std::size_t at = 0; at < piece.size();) {
        std::size_t end = at;
        switch (state_) {
            case State::record_begins:
            case State::field_begins:
            case State::plain:
                end = end_of_plain(piece, at);
                if (end == at) break;
                if (state_ == State::record_begins) record_line_ = line_;
                state_ = State::plain;
                break;
            case State::quoted:
                end = std::min(piece.find('"', at), piece.size());
                line_ += static_cast<std::size_t>(std::count(piece.begin() + static_cast<std::ptrdiff_t>(at),
                                                             piece.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
                break;
            case State::quote_seen:
            case State::cr_seen: break;
        }
        if (end > at) {
            if (auto added = add(piece.substr(at, end - at)); !added) return added;
            at = end;
            continue;
        }
        if (auto taken = take_special(piece[at]); !taken) return taken;
        ++at;
    }
    return {};
}

Result<void> CsvReader::take_special(char c) {
    switch (state_) {
        case State::quoted: state_ = State::quote_seen; return {};
        case State::cr_seen:
            if (c != '\n') return bad("a carriage return stands alone; lines end in LF or CRLF");
            return end_record();
        case State::record_begins: record_line_ = line_; [[fallthrough]];
        case State::field_begins:
            if (c != '"') break;
            quote_line_ = line_;
            state_ = State::quoted;
            return {};
        case State::plain:
            if (c == '"') return bad("a quote inside of a field that does not begin with one");
            break;
        case State::quote_seen:
            if (c == '"') {
                state_ = State::quoted;
                return add("\"");
            }
            if (c != ',' && c != '\n' && c != '\r')
                return bad("text behind the closing quote of a field; a quote inside of it is written twice");
            break;
    }
    if (auto ended = end_field(state_ == State::field_begins || state_ == State::record_begins); !ended) return ended;
    if (c == ',') {
        state_ = State::field_begins;
        return {};
    }
    if (c == '\r') {
        state_ = State::cr_seen;
        return {};
    }
    return end_record();
}

Result<void> CsvReader::add(std::string_view text) {
    if (text_.size() + text.size() > longest_row) {
        if (state_ == State::quoted && line_ > quote_line_)
            return bad(fmt::format("a row is longer than 64 MiB; is the quote of line {} never closed?", quote_line_));
        return bad("a row is longer than 64 MiB");
    }
    text_ += text;
    return {};
}

Result<void> CsvReader::end_field(bool is_null) {
    if (fields_.size() == (columns_ == 0 ? most_columns : columns_))
        return refuse(path_, record_line_,
                      columns_ == 0 ? fmt::format("more than {} columns", most_columns)
                                    : fmt::format("the row has more than {} fields, one for each column", columns_));
    fields_.push_back({text_.size(), is_null});
    return {};
}

Result<void> CsvReader::end_record() {
    state_ = State::record_begins;
    ++line_;
    if (columns_ == 0) return take_header();
    if (fields_.size() != columns_) {
        const bool is_empty = fields_.size() == 1 && fields_[0].is_null;
        return refuse(path_, record_line_,
                      is_empty ? std::string("an empty line")
                               : fmt::format("the row has {} field{}, and there are {} columns", fields_.size(),
                                             fields_.size() == 1 ? "" : "s", columns_));
    }
    cells_.clear();
    std::size_t from = 0;
    for (const Field& field : fields_) {
        cells_.push_back(field.is_null ? Cell() : Cell(std::string_view(text_).substr(from, field.end - from)));
        from = field.end;
    }
    auto taken = sink_->row(record_line_, cells_);
    fields_.clear();
    text_.clear();
    return taken;
}

Result<void> CsvReader::take_header() {
    std::vector<Column> columns;
    std::size_t from = 0;
    for (const Field& field : fields_) {
        columns.push_back({text_.substr(from, field.end - from), record_line_});
        from = field.end;
    }
    columns_ = columns.size();
    fields_.clear();
    text_.clear();
    if (auto checked = check_columns(path_, columns); !checked) return checked;
    return sink_->columns(columns);
}

Result<void> CsvReader::finish() {
    switch (state_) {
        case State::record_begins:
            if (columns_ == 0) return refuse(path_, 1, "the file is empty; its first line names the columns");
            return {};
        case State::quoted:
            return refuse(path_, quote_line_, "a field begins with a quote and is never closed with one");
        case State::cr_seen: return bad("a carriage return stands alone; lines end in LF or CRLF");
        // The last line needs no end.
        case State::field_begins:
        case State::plain:
        case State::quote_seen: break;
    }
    if (auto ended = end_field(state_ == State::field_begins); !ended) return ended;
    return end_record();
}

}  // namespace holdfast::guards::data
