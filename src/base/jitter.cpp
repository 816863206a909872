#include "base/jitter.hpp"

#include "values/random.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <random>

namespace holdfast::base {

using std::chrono::milliseconds;

namespace {

/// Not by std::random_device, which asks the processor what it can do first: in a virtual machine each such question is
/// an exit to the hypervisor.
std::uint32_t seed() {
    std::array<std::uint8_t, sizeof(std::uint32_t)> bytes{};
    fill_random(bytes);
    return std::bit_cast<std::uint32_t>(bytes);
}

}  // namespace

std::int64_t random_between(std::int64_t least, std::int64_t most) {
    // Seeded at the first use: most processes never pause.
    static thread_local std::minstd_rand random(seed());
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}

milliseconds random_between(milliseconds least, milliseconds most) {
    return milliseconds{random_between(least.count(), most.count())};
}

}  // namespace holdfast::base
