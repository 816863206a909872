#pragma once

#include "support/servers/server.hpp"

#include <string>

namespace holdfast::tests {

/// Two files in PEM that the user of the servers can read.
struct Certificate {
    std::string file;
    std::string key;
};

/// A certificate that vouches for itself. `holder` is what it is for: `DNS:name` or `IP:address`.
[[nodiscard]] Certificate make_certificate(const ServerFolder& folder, const std::string& name,
                                           const std::string& holder);

}  // namespace holdfast::tests
