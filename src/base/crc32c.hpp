#pragma once

#include <cstdint>
#include <span>

namespace holdfast::base {

/// CRC-32C (Castagnoli) of `bytes`: finds every single-bit and most other accidental changes.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::uint8_t> bytes);

}  // namespace holdfast::base
