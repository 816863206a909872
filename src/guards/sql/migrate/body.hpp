#pragma once

#include "guards/sql/migrate/lexer.hpp"

namespace holdfast::guards::migrate {

/// Follows the words of one statement, and says whether a `;` at this place belongs to a body in it: of a function, a
/// procedure, a trigger or an event.
class Body {
public:
    /// `behind` stands right after `token`, to look ahead.
    void follow(const Token& token, const Lexer& behind);
    [[nodiscard]] bool is_open() const { return depth_ > 0 || parentheses_ > 0; }
    /// The same at the end of the script, where the last `;` may be left out.
    [[nodiscard]] bool is_open_at_end() const {
        return is_open() && (kind_ != Kind::trigger_of_sqlite || !ends_trigger_);
    }

private:
    /// The kind of the statement, as far as its words so far show it.
    enum class Kind { unknown, plain, routine, trigger_of_sqlite, compound };

    void find_kind(const Token& token, const Lexer& behind);
    void find_trigger(const Token& token);
    void follow_atomic(const Token& token, const Lexer& behind);
    void follow_trigger(const Token& token);
    void follow_compound(const Token& token, const Lexer& behind);
    [[nodiscard]] bool opens_block(const Token& token, const Lexer& behind) const;

    Kind kind_ = Kind::unknown;
    int words_ = 0;
    int depth_ = 0;
    int parentheses_ = 0;
    bool is_explained_ = false;  ///< The first word is EXPLAIN.
    Token before_{};
    bool skip_ = false;          ///< The next word belongs to an END.
    bool ends_trigger_ = false;  ///< The last word is an END at the beginning of a statement.
};

}  // namespace holdfast::guards::migrate
