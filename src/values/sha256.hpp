#pragma once

#include "holdfast/lease.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace holdfast {

/// SHA-256 (FIPS 180-4) of `bytes`. Our own, because linking OpenSSL for it would double the time that
/// `holdfast run` needs to start (docs/adr/0003-own-sha256.md).
[[nodiscard]] Digest sha256(std::span<const std::uint8_t> bytes);

}  // namespace holdfast
