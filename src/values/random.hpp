#pragma once

#include <cstdint>
#include <span>

namespace holdfast {

/// Fills `bytes` with the operating system's entropy. Ends the process if there is none: a guessable secret would be
/// worse.
void fill_random(std::span<std::uint8_t> bytes);

}  // namespace holdfast
