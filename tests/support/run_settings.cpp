#include "support/run_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

namespace holdfast::tests {

int scaled(int rounds) {
    const char* text = std::getenv("HOLDFAST_TEST_SCALE");
    const double scale = text == nullptr ? 1.0 : std::stod(text);
    return std::max(1, static_cast<int>(rounds * scale));
}

std::uint64_t seed_of(std::string_view what, std::optional<std::uint64_t> fallback) {
    const char* text = std::getenv("HOLDFAST_SEED");
    const std::uint64_t seed = text != nullptr ? std::stoull(text) : fallback ? *fallback : std::random_device{}();
    fmt::print("{}: HOLDFAST_SEED={}\n", what, seed);
    return seed;
}

}  // namespace holdfast::tests
