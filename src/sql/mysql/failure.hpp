#pragma once

#include "holdfast/error.hpp"
#include "sql/error_class.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::sql::mysql {

/// Why a packet of statements did not succeed.
struct Failure {
    unsigned code = 0;          ///< Of the server, or of the driver from 2000 to 2999.
    std::string text{};         ///< Without the password.
    std::size_t statement = 0;  ///< Those before it were done, those behind it were not.

    /// By the code.
    [[nodiscard]] ErrorClass error_class() const;

    /// The server said it, so it is known how far it came.
    [[nodiscard]] bool answered() const;
    /// The connection is no more.
    [[nodiscard]] bool lost() const;
    /// Somebody else has locked a row, and the wait for it was too long, or not wanted. The transaction goes on.
    [[nodiscard]] bool row_busy() const;
    /// Somebody else was in the way. Repeating the whole transaction can succeed.
    [[nodiscard]] bool conflict() const;
    /// A COMMIT that failed like this has changed nothing. Others may have.
    [[nodiscard]] bool rolled_back() const;
    [[nodiscard]] bool no_such_table() const;
    [[nodiscard]] bool no_such_column() const;
    /// A column that was to be added is there.
    [[nodiscard]] bool duplicate_column() const;
    [[nodiscard]] bool duplicate() const;
    /// The user may not do that.
    [[nodiscard]] bool denied() const;
    /// A number was too large to be computed with.
    [[nodiscard]] bool out_of_range() const;
    /// The server keeps no more statements, of anybody.
    [[nodiscard]] bool too_many_statements() const;
    /// It does not know the statement that it was to keep.
    [[nodiscard]] bool statement_forgotten() const;
};

/// For a caller that changed nothing.
[[nodiscard]] Error error_of(const Failure& failure, std::string_view doing);

}  // namespace holdfast::sql::mysql
