#include "guards/sql/migrate/lexer.hpp"

#include <algorithm>

namespace holdfast::guards::migrate {
namespace {

constexpr auto none = std::string_view::npos;

char upper(char letter) { return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter; }
bool is_blank(char letter) {
    return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r' || letter == '\f' || letter == '\v';
}
bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
/// Bytes beyond ASCII are letters of names in all three databases.
bool begins_word(char letter) {
    return (upper(letter) >= 'A' && upper(letter) <= 'Z') || letter == '_' ||
           (static_cast<unsigned char>(letter) & 0x80U) != 0;
}
bool goes_on_word(char letter) { return begins_word(letter) || is_digit(letter) || letter == '$'; }

}  // namespace

bool Token::is(std::string_view word) const {
    return kind == Kind::word && text.size() == word.size() &&
           std::ranges::equal(text, word, [](char ours, char theirs) { return upper(ours) == theirs; });
}

bool Token::is_any(std::initializer_list<std::string_view> words) const {
    return std::ranges::any_of(words, [this](std::string_view word) { return is(word); });
}

bool Lexer::at_line_comment() const {
    if (dialect_ == Dialect::mysql && look() == '#') return true;
    if (!sees("--")) return false;
    // In MySQL 5--3 is a sum.
    return dialect_ != Dialect::mysql || is_blank(look(2));
}

bool Lexer::at_hint() const { return dialect_ == Dialect::mysql && (sees("/*!") || sees("/*M!")); }

bool Lexer::skip_block_comment() {
    int depth = 0;
    do {
        if (sees("/*") && (depth == 0 || dialect_ == Dialect::postgres)) {
            ++depth;
            at_ += 2;
        } else if (sees("*/")) {
            --depth;
            at_ += 2;
        } else {
            ++at_;
        }
        // SQLite takes the end of the script for the end of the comment.
        if (depth > 0 && at_ >= script_.size()) return dialect_ == Dialect::sqlite;
    } while (depth > 0);
    return true;
}

bool Lexer::skip_blanks() {
    for (;;) {
        while (at_ < script_.size() && is_blank(script_[at_])) ++at_;
        if (!delimiter_.empty() && sees(delimiter_)) return true;
        if (at_line_comment()) {
            at_ = std::min(script_.find('\n', at_), script_.size());
        } else if (sees("/*") && !at_hint()) {
            if (!skip_block_comment()) return false;
        } else {
            return true;
        }
    }
}

bool Lexer::at_delimiter() {
    if (delimiter_.empty()) return false;
    const std::size_t before = at_;
    if (skip_blanks() && sees(delimiter_)) return true;
    at_ = before;
    return false;
}

Token Lexer::broken(std::size_t from) {
    at_ = script_.size();
    return take(Token::Kind::broken, from);
}

Token Lexer::quoted(Token::Kind kind, char quote, bool backslashes, std::size_t from) {
    for (++at_; at_ < script_.size(); ++at_) {
        if (backslashes && script_[at_] == '\\') {
            ++at_;
        } else if (script_[at_] == quote) {
            ++at_;
            // Doubled, it stands for itself. Nothing doubles SQLite's bracket.
            if (look() != quote || quote == ']') return take(kind, from);
        }
    }
    return broken(from);
}

Token Lexer::dollar_quoted() {
    const std::size_t from = at_;
    std::size_t end = at_ + 1;
    // A tag is a name without a dollar; $1 is a parameter.
    if (end < script_.size() && begins_word(script_[end]))
        while (end < script_.size() && goes_on_word(script_[end]) && script_[end] != '$') ++end;
    if (end >= script_.size() || script_[end] != '$') {
        ++at_;
        return take(Token::Kind::symbol, from);
    }
    const std::string_view tag = script_.substr(from, end + 1 - from);
    const std::size_t closed = script_.find(tag, end + 1);
    if (closed == none) return broken(from);
    at_ = closed + tag.size();
    return take(Token::Kind::text, from);
}

Token Lexer::word() {
    const std::size_t from = at_;
    const auto kind = is_digit(look()) ? Token::Kind::number : Token::Kind::word;
    while (at_ < script_.size() && goes_on_word(script_[at_]) &&
           (delimiter_.empty() || at_ == from || !sees(delimiter_)))
        ++at_;
    // E'…' has backslashes, whatever the settings say.
    const bool is_escape = at_ - from == 1 && upper(script_[from]) == 'E' && look() == '\'';
    if (dialect_ == Dialect::postgres && is_escape) return quoted(Token::Kind::text, '\'', true, from);
    return take(kind, from);
}

Token Lexer::quoted_or_symbol() {
    const std::size_t from = at_;
    const bool mysql = dialect_ == Dialect::mysql;
    switch (look()) {
        case '\'': return quoted(Token::Kind::text, '\'', mysql, from);
        case '"': return quoted(mysql ? Token::Kind::text : Token::Kind::name, '"', mysql, from);
        case '`':
            if (dialect_ != Dialect::postgres) return quoted(Token::Kind::name, '`', false, from);
            break;
        case '[':
            if (dialect_ == Dialect::sqlite) return quoted(Token::Kind::name, ']', false, from);
            break;
        case '$':
            if (dialect_ == Dialect::postgres) return dollar_quoted();
            break;
        default: break;
    }
    ++at_;
    return take(Token::Kind::symbol, from);
}

Token Lexer::next() {
    const std::size_t before = at_;
    if (!skip_blanks()) return broken(before);
    if (at_ >= script_.size()) return {Token::Kind::end, at_, {}};
    if (at_hint()) {
        const std::size_t from = at_;
        const std::size_t closed = script_.find("*/", at_ + 2);
        if (closed == none) return broken(from);
        at_ = closed + 2;
        return take(Token::Kind::hint, from);
    }
    const bool dollar_name = dialect_ == Dialect::mysql && look() == '$';
    if (begins_word(look()) || is_digit(look()) || dollar_name) return word();
    return quoted_or_symbol();
}

}  // namespace holdfast::guards::migrate
