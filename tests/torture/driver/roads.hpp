#pragma once

#include "support/servers/proxy.hpp"
#include "torture/driver/choices.hpp"

#include <memory>

namespace torture {

/// The ways between clients and the nodes of a store: proxies that lose, delay and hold messages.
class Roads {
public:
    explicit Roads(const std::vector<std::uint16_t>& servers);

    /// In the order of the servers.
    [[nodiscard]] std::vector<std::uint16_t> ports() const;
    [[nodiscard]] static std::vector<std::string> faults();
    /// Nothing, where the fault is of another kind.
    void begin(const Choice& choice);
    void finish(const Choice& choice);

private:
    std::vector<std::unique_ptr<holdfast::tests::Proxy>> proxies_{};
};

}  // namespace torture
