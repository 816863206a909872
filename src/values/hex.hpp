#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace holdfast {

/// Lower-case hexadecimal digits.
[[nodiscard]] std::string to_hex(std::span<const std::uint8_t> bytes);

/// Fills `bytes` from exactly twice as many digits; false if `text` is anything else.
[[nodiscard]] bool from_hex(std::string_view text, std::span<std::uint8_t> bytes);

}  // namespace holdfast
