#include "guards/sql/migrate/splitter.hpp"

#include "guards/sql/migrate/body.hpp"

#include <algorithm>
#include <optional>

namespace holdfast::guards::migrate {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r\n\f\v");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n\f\v") + 1 - first);
}

class Splitter {
public:
    Splitter(std::string_view script, Dialect dialect) : script_(script), lexer_(script, dialect) {
        if (script.starts_with(byte_order_mark)) lexer_.go_to(byte_order_mark.size());
    }

    std::expected<std::vector<Statement>, SplitError> run() {
        for (;;) {
            if (lexer_.at_delimiter()) {
                end_statement(lexer_.at());
                lexer_.go_to(lexer_.at() + lexer_.delimiter().size());
                continue;
            }
            const Token token = lexer_.next();
            if (token.kind == Token::Kind::broken)
                return std::unexpected(SplitError{line_of(token.at), "this string, name or comment never ends"});
            if (token.kind == Token::Kind::end) break;
            if (!begin_ && is_delimiter_line(token)) {
                take_delimiter();
                continue;
            }
            follow(token);
        }
        if (begin_ && body_.is_open_at_end())
            return std::unexpected(SplitError{line_of(*begin_),
                                              "the body or the parenthesis that begins in this "
                                              "statement never ends"});
        end_statement(script_.size());
        return std::move(statements_);
    }

private:
    /// The client of MySQL reads this line itself.
    [[nodiscard]] bool is_delimiter_line(const Token& token) const {
        return lexer_.dialect() == Dialect::mysql && token.is("DELIMITER");
    }

    void take_delimiter() {
        const std::size_t end = std::min(script_.find('\n', lexer_.at()), script_.size());
        const std::string_view word = trimmed(script_.substr(lexer_.at(), end - lexer_.at()));
        lexer_.set_delimiter(word == ";" ? std::string_view{} : word.substr(0, word.find_first_of(" \t")));
        lexer_.go_to(end);
    }

    void follow(const Token& token) {
        const bool plain = lexer_.delimiter().empty();
        if (!begin_ && plain && token.is(';')) return;
        if (!begin_) {
            begin_ = token.at;
            body_ = Body();
        }
        if (!plain) return;
        body_.follow(token, lexer_);
        if (token.is(';') && !body_.is_open()) return end_statement(token.at);
        last_ = token.behind();
    }

    void end_statement(std::size_t at) {
        if (!begin_) return;
        // Without the comments behind it. At a delimiter of MySQL's client nothing was followed.
        const std::size_t end = lexer_.delimiter().empty() ? last_ : at;
        statements_.push_back({std::string(trimmed(script_.substr(*begin_, end - *begin_))), line_of(*begin_)});
        begin_.reset();
    }

    [[nodiscard]] std::size_t line_of(std::size_t at) {
        line_ += static_cast<std::size_t>(std::ranges::count(script_.substr(counted_, at - counted_), '\n'));
        counted_ = at;
        return line_;
    }

    std::string_view script_;
    Lexer lexer_;
    Body body_{};
    std::optional<std::size_t> begin_{};  ///< Of the statement that is being followed.
    std::size_t last_ = 0;                ///< Behind its last token.
    std::size_t line_ = 1;
    std::size_t counted_ = 0;
    std::vector<Statement> statements_{};
};

}  // namespace

std::expected<std::vector<Statement>, SplitError> split(std::string_view script, Dialect dialect) {
    return Splitter(script, dialect).run();
}

}  // namespace holdfast::guards::migrate
