#pragma once

#include "base/url.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::stores::redis {

enum class Tls { none, verified, unverified };

/// What a URL says about the server and our place in it.
struct Address {
    std::string host;
    std::uint16_t port = 6379;
    std::string database = "0";
    std::optional<std::string> user{};
    std::optional<std::string> password{};
    std::string prefix = "holdfast";
    Tls tls = Tls::none;
    std::string tls_ca{};  ///< A file; empty for those that the system trusts.

    /// Takes this store's parameters. Refused with `usage`, without repeating what could be a password.
    [[nodiscard]] static Result<Address> of(base::Url& url);

    /// `host:port`, for people.
    [[nodiscard]] std::string place() const;
    /// The server is this host, which nobody can listen in on.
    [[nodiscard]] bool is_loopback() const;
    /// `text` of somebody else, without the password.
    [[nodiscard]] std::string scrubbed(std::string text) const;
};

}  // namespace holdfast::stores::redis
