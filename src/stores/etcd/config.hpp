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

/// What the store's URL says.
struct Address {
    std::vector<Endpoint> endpoints;
    std::string user;      ///< Empty: nobody in particular.
    std::string password;  ///< Never in a text.
    std::string prefix;    ///< Of all keys, without a `/` at its end.
    std::string ca_file;   ///< Empty: those that the system trusts.
    std::chrono::milliseconds margin{5000};
    std::string shown;  ///< The URL for people.

    /// Refused with `usage`.
    [[nodiscard]] static Result<Address> of(base::Url url);
};

}  // namespace holdfast::stores::etcd
