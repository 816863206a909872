#pragma once

#include "holdfast/error.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace holdfast::access {

/// Some IP addresses: `10.0.0.0/8`, `::1`.
class Network {
public:
    /// Refused with `usage`, also if bits beyond the prefix length are set, or if it contains all addresses.
    [[nodiscard]] static Result<Network> parse(std::string_view text);

    /// An IPv4 address counts as itself also where IPv6 writes it (`::ffff:10.0.0.1`). False for what is no address.
    [[nodiscard]] bool contains(std::string_view address) const;

private:
    using Bytes = std::array<std::uint8_t, 16>;
    Bytes first_{};  ///< As IPv6; IPv4 in its mapped form.
    unsigned bits_ = 0;
    bool is_v4_ = false;
};

}  // namespace holdfast::access
