#pragma once

#include "base/url.hpp"

#include <map>
#include <string>

namespace holdfast::sql::postgres {

/// Where the server is, and how to log in.
struct Address {
    std::string url;                             ///< For people, without secrets.
    std::map<std::string, std::string> options;  ///< What libpq is given, by its own names.

    /// All parameters of `url` are libpq's; a caller with parameters of its own takes them out before. Refused with
    /// `usage`; the message never repeats the URL.
    [[nodiscard]] static Result<Address> of(base::Url url);

    /// How many servers the URL names, one of which takes writes.
    [[nodiscard]] std::size_t hosts() const;
};

}  // namespace holdfast::sql::postgres
