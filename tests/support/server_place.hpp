#pragma once

#include <cstdint>
#include <string>

namespace holdfast::tests {

/// Where a store lives in a server: a schema, a database or a prefix, different for each name. Goes with the server.
class ServerPlace {
public:
    /// Makes it ready: MySQL wants a database that is there.
    ServerPlace(std::string kind, std::uint16_t port, std::string name);
    /// One that nobody else uses.
    ServerPlace(std::string kind, std::uint16_t port);

    [[nodiscard]] std::string url() const { return url(port_); }
    /// The same place, asked through a port at which somebody stands in between.
    [[nodiscard]] std::string url(std::uint16_t port) const;
    /// Of the schema, the database or the prefix.
    [[nodiscard]] const std::string& name() const { return name_; }

private:
    std::string kind_;
    std::uint16_t port_;
    std::string name_;
};

}  // namespace holdfast::tests
