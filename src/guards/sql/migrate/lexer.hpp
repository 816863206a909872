#pragma once

#include "holdfast/sql.hpp"

#include <cstddef>
#include <string_view>

namespace holdfast::guards::migrate {

using Dialect = SqlDialect;

/// What stands between two places of a script.
struct Token {
    enum class Kind {
        word,    ///< A keyword or a name without quotes.
        name,    ///< A name in quotes.
        text,    ///< A string, dollar-quoted ones included.
        number,  ///< Begins with a digit.
        symbol,  ///< One character.
        hint,    ///< A comment that MySQL and MariaDB execute.
        end,     ///< Of the script.
        broken,  ///< Begins and never ends: a string, a name or a comment. `text` is the rest of the script.
    };
    Kind kind = Kind::end;
    std::size_t at = 0;
    std::string_view text{};

    /// Whether it is `word`, which is in capitals, in whatever case. A name in quotes is no word.
    [[nodiscard]] bool is(std::string_view word) const;
    /// Whether it is one of these words.
    [[nodiscard]] bool is_any(std::initializer_list<std::string_view> words) const;
    [[nodiscard]] bool is(char symbol) const { return kind == Kind::symbol && text.front() == symbol; }
    [[nodiscard]] std::size_t behind() const { return at + text.size(); }
};

/// Cuts a script into tokens by the rules of one database. Comments and blanks are passed over. A copy looks ahead.
class Lexer {
public:
    Lexer(std::string_view script, Dialect dialect) : script_(script), dialect_(dialect) {}

    [[nodiscard]] Token next();
    [[nodiscard]] Token peek() const { return Lexer(*this).next(); }

    [[nodiscard]] std::size_t at() const { return at_; }
    void go_to(std::size_t at) { at_ = at; }
    [[nodiscard]] Dialect dialect() const { return dialect_; }
    /// MySQL's own delimiter instead of `;`: it also ends a word, as in `END$$`. Empty: none.
    void set_delimiter(std::string_view delimiter) { delimiter_ = delimiter; }
    [[nodiscard]] std::string_view delimiter() const { return delimiter_; }
    /// Whether the delimiter stands here, after blanks and comments.
    [[nodiscard]] bool at_delimiter();

private:
    [[nodiscard]] bool sees(std::string_view text) const { return script_.substr(at_).starts_with(text); }
    [[nodiscard]] char look(std::size_t ahead = 0) const {
        return at_ + ahead < script_.size() ? script_[at_ + ahead] : '\0';
    }
    [[nodiscard]] bool at_line_comment() const;
    [[nodiscard]] bool at_hint() const;
    /// False if a comment never ends.
    [[nodiscard]] bool skip_blanks();
    [[nodiscard]] bool skip_block_comment();
    [[nodiscard]] Token take(Token::Kind kind, std::size_t from) const {
        return {kind, from, script_.substr(from, at_ - from)};
    }
    [[nodiscard]] Token broken(std::size_t from);
    [[nodiscard]] Token quoted(Token::Kind kind, char quote, bool backslashes, std::size_t from);
    [[nodiscard]] Token dollar_quoted();
    [[nodiscard]] Token word();
    [[nodiscard]] Token quoted_or_symbol();

    std::string_view script_;
    Dialect dialect_;
    std::string_view delimiter_{};
    std::size_t at_ = 0;
};

}  // namespace holdfast::guards::migrate
