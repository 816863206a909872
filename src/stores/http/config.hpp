#pragma once

#include "base/url.hpp"
#include "holdfast/error.hpp"

#include <string>

namespace holdfast::stores::http {

/// The content of the store's URL, and the token of the caller.
struct Address {
    std::string base;     ///< `https://host:port/path` without a slash at its end and without the token.
    std::string shown;    ///< The URL for people.
    std::string token;    ///< Empty: none is sent. Never part of a message.
    std::string ca_file;  ///< Empty: the certificates that the system trusts.
    bool is_loopback = false;

    /// The token is that of the URL, of the file that its `token_file` names, or of HOLDFAST_API_TOKEN; the first one
    /// that is there. Refused with `usage` or, for a file that is not the caller's own, with `store_unsafe`.
    [[nodiscard]] static Result<Address> of(base::Url url);
};

}  // namespace holdfast::stores::http
