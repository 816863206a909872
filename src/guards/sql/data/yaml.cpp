#include "guards/sql/data/yaml.hpp"

#include "values/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <optional>
#include <streambuf>
#include <string>
#include <vector>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

// The only file that knows yaml-cpp.
namespace holdfast::guards::data {
namespace {

/// Ends the parser, which knows no other way.
struct Refused {
    Error error;
};

std::size_t line_of(const YAML::Mark& mark) { return mark.line < 0 ? 1 : static_cast<std::size_t>(mark.line) + 1; }

class Rows final : public YAML::EventHandler {
public:
    Rows(std::string_view path, RowSink& sink) : path_(path), sink_(&sink) {}

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (documents_++ > 0) refuse_at(mark, "a second document; a file has one list");
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        expect_no_anchor(mark, anchor);
        if (depth_ == in_row && !key_) refuse_at(mark, "a column has no name");
        take(mark, std::nullopt);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
        refuse_at(mark, "an alias; data files have neither anchors nor aliases");
    }
    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        expect_no_anchor(mark, anchor);
        expect_no_tag(mark, tag);
        if (value.find('\0') != std::string::npos) refuse_at(mark, "a NUL character");
        if (!is_utf8(value)) refuse_at(mark, "the text is not UTF-8");
        take(mark, value);
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value /*style*/) override {
        expect_no_anchor(mark, anchor);
        expect_no_tag(mark, tag);
        if (depth_ != outside) refuse_at(mark, depth_ == in_list ? not_a_row : nested);
        depth_ = in_list;
    }
    void OnSequenceEnd() override { depth_ = outside; }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value /*style*/) override {
        expect_no_anchor(mark, anchor);
        expect_no_tag(mark, tag);
        if (depth_ == in_row) refuse_at(mark, nested);
        around_ = depth_;
        depth_ = in_row;
        row_line_ = line_of(mark);
        size_ = 0;
        seen_ = 0;
        values_.assign(columns_.size(), std::nullopt);
        given_.assign(columns_.size(), false);
    }
    void OnMapEnd() override {
        depth_ = around_;
        if (columns_.empty()) throw Refused{refuse(path_, row_line_, "a row without a column").error()};
        if (!has_columns_) {
            has_columns_ = true;
            pass_on(sink_->columns(columns_));
        }
        if (const auto missing = std::ranges::find(given_, false); missing != given_.end())
            throw Refused{
                refuse(path_, row_line_,
                       fmt::format("the row has no \"{}\", which the first row has",
                                   printable(columns_[static_cast<std::size_t>(missing - given_.begin())].name)))
                    .error()};
        cells_.clear();
        for (const auto& value : values_) cells_.push_back(value ? Cell(*value) : Cell());
        pass_on(sink_->row(row_line_, cells_));
    }

private:
    enum Depth { outside, in_list, in_row };
    static constexpr std::string_view not_a_list = "a data file is a list of rows, each begins with \"- \", or one row";
    static constexpr std::string_view not_a_row = "a row is a mapping: \"- column: value\"";
    static constexpr std::string_view nested =
        "a value is a text, a number or nothing; write lists and mappings in quotes, as the column's type wants them";

    [[noreturn]] void refuse_at(const YAML::Mark& mark, std::string_view why) const {
        throw Refused{refuse(path_, line_of(mark), why).error()};
    }
    static void pass_on(Result<void> taken) {
        if (!taken) throw Refused{std::move(taken.error())};
    }
    void expect_no_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
        if (anchor != 0) refuse_at(mark, "an anchor; data files have neither anchors nor aliases");
    }
    /// `?` and `!` are what the parser says of a plain and of a quoted value.
    void expect_no_tag(const YAML::Mark& mark, const std::string& tag) const {
        if (!tag.empty() && tag != "?" && tag != "!" && tag != "tag:yaml.org,2002:str")
            refuse_at(mark, "a tag; what stands in the file reaches the database as text");
    }

    void take(const YAML::Mark& mark, std::optional<std::string> value) {
        if (depth_ != in_row) refuse_at(mark, depth_ == outside ? not_a_list : not_a_row);
        size_ += value ? value->size() : 0;
        if (size_ > longest_row) refuse_at(mark, "a row is longer than 64 MiB");
        if (!key_) {
            key_ = find_column(mark, *value);
            return;
        }
        values_[*key_] = std::move(value);
        key_.reset();
    }

    std::size_t find_column(const YAML::Mark& mark, const std::string& name) {
        // Rows mostly have their columns in one order.
        std::size_t at = seen_++;
        if (at >= columns_.size() || columns_[at].name != name)
            at = static_cast<std::size_t>(std::ranges::find(columns_, name, &Column::name) - columns_.begin());
        if (at == columns_.size()) {
            if (has_columns_)
                refuse_at(mark, fmt::format("the row has \"{}\", which the first row has not", printable(name)));
            if (name.empty()) refuse_at(mark, "a column has no name");
            if (at == most_columns) refuse_at(mark, fmt::format("more than {} columns", most_columns));
            columns_.push_back({name, line_of(mark)});
            values_.emplace_back();
            given_.push_back(false);
        }
        if (given_[at]) refuse_at(mark, fmt::format("the column \"{}\" is there twice", printable(name)));
        given_[at] = true;
        return at;
    }

    std::string_view path_;
    RowSink* sink_;
    int documents_ = 0;
    Depth depth_ = outside;
    Depth around_ = outside;  ///< What the row is in.
    std::size_t row_line_ = 1;
    std::size_t size_ = 0;  ///< Of the row so far.
    std::size_t seen_ = 0;  ///< Columns of the row so far.
    bool has_columns_ = false;
    std::vector<Column> columns_{};
    std::optional<std::size_t> key_{};  ///< The column whose value comes next.
    std::vector<std::optional<std::string>> values_{};
    std::vector<bool> given_{};
    std::vector<Cell> cells_{};
};

/// Ends a file that has any text with the mark of its end. Without it the parser takes a quote that is never closed for
/// one that is.
class WithEnd final : public std::streambuf {
public:
    explicit WithEnd(std::streambuf& from) : from_(&from), piece_(4096, '\0') {}

private:
    int_type underflow() override {
        auto size = from_->sgetn(piece_.data(), static_cast<std::streamsize>(piece_.size()));
        if (size == 0 && last_ != 0) {
            const std::string_view end = last_ == '\n' ? "...\n" : "\n...\n";
            std::ranges::copy(end, piece_.begin());
            size = static_cast<std::streamsize>(end.size());
            last_ = 0;
        } else if (size > 0) {
            last_ = piece_[static_cast<std::size_t>(size) - 1];
        }
        if (size == 0) return traits_type::eof();
        setg(piece_.data(), piece_.data(), piece_.data() + size);
        return traits_type::to_int_type(piece_.front());
    }

    std::streambuf* from_;
    std::string piece_;
    char last_ = 0;  ///< 0 before the first character, and behind the end.
};

}  // namespace

Result<void> read_yaml(std::string_view path, std::istream& from, RowSink& sink) {
    try {
        Rows rows(path, sink);
        WithEnd buffer(*from.rdbuf());
        std::istream in(&buffer);
        YAML::Parser parser(in);
        bool any = false;
        while (parser.HandleNextDocument(rows)) any = true;
        if (!any) return refuse(path, 1, "the file is empty; a list without rows is written []");
        return {};
    } catch (Refused& refused) {
        return std::unexpected(std::move(refused.error));
    } catch (const YAML::Exception& error) {
        return refuse(path, line_of(error.mark), printable(error.msg));
    }
}

}  // namespace holdfast::guards::data
