#pragma once

#include "base/url.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::stores::redis {

enum class Tls { none, verified, unverified };

/// The content of a URL: the server, and the store's place in it.
struct Address {
    std::string host;
    std::uint16_t port = 6379;
    std::string database = "0";
    std::optional<std::string> user{};
    std::optional<std::string> password{};
    std::string prefix = "holdfast";
    Tls tls = Tls::none;
    std::string tls_ca{};  ///< A file of certificates; empty for those that the system trusts.

    /// Takes this store's parameters from `url`. Refused with `usage`; the message repeats nothing that could be a
    /// password.
    [[nodiscard]] static Result<Address> of(base::Url& url);

    /// `host:port`, for people.
    [[nodiscard]] std::string place() const;
    /// The server is on this host, so nobody can listen in.
    [[nodiscard]] bool is_loopback() const;
    /// A text from the server or a library, with the password removed.
    [[nodiscard]] std::string scrubbed(std::string_view text) const {
        return base::without_secret(text, password.value_or(""));
    }
};

}  // namespace holdfast::stores::redis
