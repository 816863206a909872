#pragma once

#include "holdfast/lease.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace holdfast {

/// SHA-256 (FIPS 180-4) of bytes that come in pieces. Our own, because linking OpenSSL for it would double the time
/// that `holdfast run` needs to start (docs/adr/0003-own-sha256.md).
class Sha256 {
public:
    /// Adds the next bytes, of any number.
    void update(std::span<const std::uint8_t> bytes);
    /// The digest of all bytes that were added. The object must not be used after this.
    [[nodiscard]] Digest finish();

    static constexpr std::size_t block_size = 64;
    using State = std::array<std::uint32_t, 8>;

private:
    State state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::uint8_t, block_size> rest_{};  ///< The bytes of an incomplete block.
    std::uint64_t size_ = 0;                       ///< Of all bytes.
};

/// The digest of bytes that are in memory.
[[nodiscard]] Digest sha256(std::span<const std::uint8_t> bytes);

}  // namespace holdfast
