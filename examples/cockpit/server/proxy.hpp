#pragma once

#include "http.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace cockpit {

/// Passes what pages ask of `/v1` to the daemon, in the name of the user who is signed in. So pages have one origin,
/// and no browser ever has a token.
class Proxy {
public:
    /// `daemon`: the port of a daemon on the loopback.
    explicit Proxy(std::uint16_t daemon) : daemon_(daemon) {}

    /// Writes the daemon's answer to `socket` as it comes, also one that never ends, such as a stream of events. A
    /// response of this server if the daemon was not reached.
    [[nodiscard]] std::optional<Response> relay(const Request& request, const std::string& token, int socket) const;

private:
    std::uint16_t daemon_;
};

}  // namespace cockpit
