#pragma once

#include "base/url.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sql::mysql {

enum class Tls {
    off,
    verify,  ///< Encrypted, and the certificate is checked against the host's name.
};

/// Where the database is, and how to get in.
struct Address {
    struct Endpoint {
        std::string host;
        std::uint16_t port;
    };
    std::vector<Endpoint> endpoints{};  ///< The first one that answers and can be written to is used.
    std::string socket{};               ///< A Unix socket, instead of them.
    std::string user{};
    std::string password{};
    std::string database{};
    Tls tls = Tls::verify;
    std::string tls_ca{};  ///< Empty: what the system trusts.
    std::string shown{};   ///< For people.

    /// Takes its parameters out of `url`.
    [[nodiscard]] static Result<Address> of(base::Url& url);

    /// Nobody between us and the server can listen or pretend.
    [[nodiscard]] bool is_private() const;
};

}  // namespace holdfast::sql::mysql
