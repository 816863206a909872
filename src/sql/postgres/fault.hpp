#pragma once

#include "sql/error_class.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::sql::postgres {

/// Why a trip to the server did not bring all its answers.
struct Fault {
    std::size_t at = 0;        ///< The statement that was refused, or not answered.
    std::string sqlstate{};    ///< Empty if the server said nothing: the connection broke, or time was over.
    std::string message{};     ///< Without secrets.
    bool fatal = false;        ///< The server ended the session.
    std::string constraint{};  ///< That was violated, if it has a name.
    std::string detail{};      ///< The server's detail and its advice. May repeat data of the user's.
    std::string context{};     ///< What the server was doing. May repeat data of the user's.

    [[nodiscard]] bool silent() const { return sqlstate.empty(); }
    /// By SQLSTATE.
    [[nodiscard]] ErrorClass error_class() const;
    /// A statement that the session should have prepared is unknown, or is there although it should not be: a pooler
    /// has put another session in its place. Nothing was changed, and the connection goes on without prepared
    /// statements.
    [[nodiscard]] bool session_was_replaced() const { return sqlstate == "26000" || sqlstate == "42P05"; }
};

/// The server's state in English, such as "the server's disk is full: ", if the code says it; otherwise empty. The
/// server's own words may be in any language.
[[nodiscard]] std::string_view condition_of(const Fault& fault);

}  // namespace holdfast::sql::postgres
