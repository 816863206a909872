#pragma once

#include "holdfast/error.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::base {

/// Where a server is, percent-decoded.
struct Server {
    struct Endpoint {
        std::string host;  ///< Without the brackets of an IPv6 address.
        std::optional<std::uint16_t> port;

        [[nodiscard]] bool operator==(const Endpoint&) const = default;
    };
    std::optional<std::string> user;
    std::optional<std::string> password;
    std::vector<Endpoint> endpoints;  ///< At least one, each with a host.
    std::string path;                 ///< The text after the `/` that follows them.
};

/// A store's address, split. `sqlite:///abs/file.db?sync=off` has the scheme `sqlite`, the place
/// `/abs/file.db` and one parameter; `sqlite:file.db` has the place `file.db`. For a server the place is
/// everything between `//` and `?`.
struct Url {
    std::string scheme;
    std::string place;    ///< Percent-decoded.
    std::string written;  ///< The place, not decoded: only here an escaped `:` in a password can be told from the one
                          ///< after the user.
    bool has_authority = false;                     ///< Written with `//` and something other than a third `/`.
    std::map<std::string, std::string> parameters;  ///< Percent-decoded.

    /// Refused with `usage`. The message never repeats the text, which may hold a password.
    [[nodiscard]] static Result<Url> parse(std::string_view text);

    /// The place as `user:password@host:port,host:port/path`. Refused with `usage`, without repeating it.
    [[nodiscard]] Result<Server> server() const;

    /// Removes `name` and gives its value.
    [[nodiscard]] std::optional<std::string> take(const std::string& name);

    /// Removes `name` and says whether it was `on` (default: `fallback`). Anything but `on` and `off` is `usage`.
    [[nodiscard]] Result<bool> take_switch(const std::string& name, bool fallback);

    /// Refused with `usage` if parameters are left that were not taken: a misspelt one must not be ignored.
    [[nodiscard]] Result<void> expect_no_parameters() const;

    /// For people: the scheme and the place, without what could be a password.
    [[nodiscard]] std::string redacted() const;
};

/// `text` with `***` in place of each `secret`, for messages of servers and drivers that may repeat a password.
[[nodiscard]] std::string without_secret(std::string_view text, std::string_view secret);

}  // namespace holdfast::base
