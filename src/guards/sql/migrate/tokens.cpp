#include "guards/sql/migrate/tokens.hpp"

namespace holdfast::guards::migrate {
namespace {

bool is_one_of(const Token& token, std::string_view alternatives) {
    while (!alternatives.empty()) {
        const std::string_view word = alternatives.substr(0, alternatives.find('|'));
        if (token.is(word)) return true;
        alternatives.remove_prefix(std::min(word.size() + 1, alternatives.size()));
    }
    return false;
}

}  // namespace

Tokens::Tokens(std::string_view statement, Dialect dialect) {
    Lexer lexer(statement, dialect);
    for (Token token = lexer.next(); token.kind != Token::Kind::end && token.kind != Token::Kind::broken;
         token = lexer.next())
        tokens_.push_back(token);
    if (dialect != Dialect::mysql || !begins_with({"SET", "STATEMENT"})) return;
    if (const auto behind = find({"FOR"}, 2))
        tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(*behind));
}

std::optional<std::size_t> Tokens::match(std::size_t at, std::initializer_list<std::string_view> words) const {
    for (std::string_view word : words) {
        const bool may_be_missing = word.ends_with('?');
        if (may_be_missing) word.remove_suffix(1);
        if (at < tokens_.size() && is_one_of(tokens_[at], word))
            ++at;
        else if (!may_be_missing)
            return std::nullopt;
    }
    return at;
}

std::optional<std::size_t> Tokens::find(std::initializer_list<std::string_view> words, std::size_t from) const {
    for (std::size_t at = from; at < tokens_.size(); ++at)
        if (const auto behind = match(at, words)) return behind;
    return std::nullopt;
}

std::string Tokens::name_at(std::size_t& at) const {
    std::string name;
    for (bool wants_name = true; at < tokens_.size(); ++at) {
        const Token& token = tokens_[at];
        const bool is_name = token.kind == Token::Kind::word || token.kind == Token::Kind::name;
        if (wants_name ? !is_name : !token.is('.')) break;
        name += token.text;
        wants_name = !wants_name;
    }
    return name;
}

std::size_t Tokens::item_end(std::size_t at) const {
    int depth = 0;
    for (; at < tokens_.size(); ++at) {
        if (tokens_[at].is('(')) ++depth;
        if (tokens_[at].is(')')) --depth;
        if (tokens_[at].is(',') && depth <= 0) return at;
    }
    return at;
}

Tokens Tokens::part(std::size_t from, std::size_t to) const {
    Tokens some;
    some.tokens_.assign(tokens_.begin() + static_cast<std::ptrdiff_t>(from),
                        tokens_.begin() + static_cast<std::ptrdiff_t>(to));
    return some;
}

}  // namespace holdfast::guards::migrate
