#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::tests {

/// Where a store lives in a server: a schema, a database or a prefix, different for each name. Goes with the server.
class ServerPlace {
public:
    /// Makes it ready: MySQL wants a database that is there.
    ServerPlace(std::string kind, std::uint16_t port, std::string name);
    /// One that nobody else uses.
    ServerPlace(std::string kind, std::uint16_t port);
    /// One in the server that the test run shares; of `http` one in a daemon of its own, on a SQLite store.
    explicit ServerPlace(const std::string& kind);

    [[nodiscard]] std::string url() const { return url(port_); }
    /// The same place, asked through a port at which somebody stands in between.
    [[nodiscard]] std::string url(std::uint16_t port) const;
    [[nodiscard]] std::uint16_t port() const { return port_; }
    /// Of the schema, the database or the prefix.
    [[nodiscard]] const std::string& name() const { return name_; }

private:
    std::string kind_;
    std::uint16_t port_;
    std::string name_;
    std::shared_ptr<const void> daemon_{};  ///< Shared by the copies of this place.
};

/// The schemes of the stores that are reached over the network: those of `server_kinds`, and `http`.
[[nodiscard]] std::vector<std::string> network_kinds();

}  // namespace holdfast::tests
