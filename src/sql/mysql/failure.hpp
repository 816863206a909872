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
    std::size_t statement = 0;  ///< The one that failed. Those before it were run, those after it were not.

    /// The class of the code.
    [[nodiscard]] ErrorClass error_class() const;

    /// The error came from the server, so it is known how far the packet came.
    [[nodiscard]] bool answered() const;
    /// The connection is broken.
    [[nodiscard]] bool lost() const;
    /// Another transaction has locked a row, and the wait for it was too long or not wanted. Our transaction is still
    /// open.
    [[nodiscard]] bool row_busy() const;
    /// Another transaction was in the way. Repeating the whole transaction can succeed.
    [[nodiscard]] bool conflict() const;
    /// A COMMIT that failed with this error has changed nothing. After other errors it may have.
    [[nodiscard]] bool rolled_back() const;
    [[nodiscard]] bool no_such_table() const;
    [[nodiscard]] bool no_such_column() const;
    /// A column that was to be added exists already.
    [[nodiscard]] bool duplicate_column() const;
    [[nodiscard]] bool duplicate() const;
    /// The user may not do that.
    [[nodiscard]] bool denied() const;
    /// The server has as many prepared statements as it can keep.
    [[nodiscard]] bool too_many_statements() const;
    /// The server does not know a statement that was prepared.
    [[nodiscard]] bool statement_forgotten() const;
};

/// For a caller that changed nothing.
[[nodiscard]] Error error_of(const Failure& failure, std::string_view doing);

}  // namespace holdfast::sql::mysql
