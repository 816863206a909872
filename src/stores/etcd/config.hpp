#pragma once

#include "base/url.hpp"
#include "holdfast/error.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace holdfast::stores::etcd {

struct Endpoint {
    std::string name;  ///< `host:port`, for people.
    std::string url;   ///< Without a path.
};

/// The content of the store's URL.
struct Address {
    std::vector<Endpoint> endpoints;
    std::string user;      ///< Empty: no login.
    std::string password;  ///< Never part of a message.
    std::string prefix;    ///< The beginning of all keys, without a `/` at its end.
    std::string ca_file;   ///< Empty: the certificates that the system trusts.
    std::chrono::milliseconds margin{5000};
    std::string shown;  ///< The URL for people.

    /// Refused with `usage`.
    [[nodiscard]] static Result<Address> of(base::Url url);
};

}  // namespace holdfast::stores::etcd
