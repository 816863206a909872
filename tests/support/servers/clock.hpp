#pragma once

#include "support/servers/server.hpp"

#include <chrono>

namespace holdfast::tests {

/// The wall clock of one server, in the hands of a test; see `clock_shim.cpp`.
class ServerClock {
public:
    ServerClock();

    /// What the server's environment needs.
    [[nodiscard]] std::vector<std::string> environment() const;
    /// Moves the clock, now.
    void step(std::chrono::milliseconds step);

private:
    ServerFolder folder_;
    std::string file_;
    std::string shim_;
    std::chrono::milliseconds offset_{0};
};

}  // namespace holdfast::tests
