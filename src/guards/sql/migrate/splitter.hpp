#pragma once

#include "guards/sql/migrate/lexer.hpp"

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::guards::migrate {

/// One statement of a script, without the delimiter that ended it and the comments before it.
struct Statement {
    std::string text;
    std::size_t line = 1;  ///< Of its first word, counted from 1.
};

/// Why a script cannot be cut.
struct SplitError {
    std::size_t line = 1;
    std::string message;
};

/// Cuts a script where the database's own client would: not inside strings, names and comments, nor inside the bodies
/// of functions, procedures, triggers and events. MySQL's DELIMITER lines are obeyed. A script whose end is missing is
/// refused: a part of a body that ran as a statement would do what nobody wrote.
[[nodiscard]] std::expected<std::vector<Statement>, SplitError> split(std::string_view script, Dialect dialect);

}  // namespace holdfast::guards::migrate
