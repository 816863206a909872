#pragma once

#include "guards/sql/migrate/lexer.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::guards::migrate {

/// The tokens of one statement, to be asked what it does.
class Tokens {
public:
    /// MariaDB's `SET STATEMENT … FOR` is left out: what stands behind it is the statement.
    Tokens(std::string_view statement, Dialect dialect);

    /// Whether the statement begins with these words. A word `|` stands between alternatives: "TABLE|VIEW"; one with
    /// a `?` behind it may be missing: "UNIQUE?".
    [[nodiscard]] bool begins_with(std::initializer_list<std::string_view> words) const {
        return match(0, words).has_value();
    }
    /// Where these words stand first; the place behind them.
    [[nodiscard]] std::optional<std::size_t> find(std::initializer_list<std::string_view> words,
                                                  std::size_t from = 0) const;
    [[nodiscard]] bool has(std::initializer_list<std::string_view> words, std::size_t from = 0) const {
        return find(words, from).has_value();
    }
    /// The place behind these words, if they stand at `at`.
    [[nodiscard]] std::optional<std::size_t> match(std::size_t at, std::initializer_list<std::string_view> words) const;

    [[nodiscard]] std::size_t size() const { return tokens_.size(); }
    [[nodiscard]] const Token& operator[](std::size_t at) const { return tokens_[at]; }
    /// The name at `at`, `schema.table` as it is written, and the place behind it.
    [[nodiscard]] std::string name_at(std::size_t& at) const;
    /// The end of the item of a list that begins at `at`: the next comma outside parentheses, or the end.
    [[nodiscard]] std::size_t item_end(std::size_t at) const;
    /// A part of it.
    [[nodiscard]] Tokens part(std::size_t from, std::size_t to) const;

private:
    Tokens() = default;
    std::vector<Token> tokens_{};
};

}  // namespace holdfast::guards::migrate
