#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// What a person or a CI job may say about a test run, read in this one place.
namespace holdfast::tests {

/// `rounds` times HOLDFAST_TEST_SCALE (default 1), at least one. Sanitizer builds run with less.
[[nodiscard]] int scaled(int rounds);

/// HOLDFAST_SEED if it is set, otherwise `fallback` or a random one. Prints it, so that a failed run can be replayed.
[[nodiscard]] std::uint64_t seed_of(std::string_view what, std::optional<std::uint64_t> fallback = std::nullopt);

}  // namespace holdfast::tests
