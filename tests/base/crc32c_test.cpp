#include "base/crc32c.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace holdfast::base {
namespace {

std::vector<std::uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

// The check value of the CRC catalogue, and the vectors of RFC 3720, B.4.
TEST(Crc32cTest, AgreesWithThePublishedVectors) {
    EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
    EXPECT_EQ(crc32c({}), 0U);
    EXPECT_EQ(crc32c(std::vector<std::uint8_t>(32, 0x00)), 0x8a9136aaU);
    EXPECT_EQ(crc32c(std::vector<std::uint8_t>(32, 0xff)), 0x62a8ab43U);
    std::vector<std::uint8_t> rising(32);
    for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<std::uint8_t>(i);
    EXPECT_EQ(crc32c(rising), 0x46dd794eU);
}

TEST(Crc32cTest, FindsEverySingleFlippedBit) {
    const auto bytes = bytes_of("a record of some length, as a lock has it");
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        auto flipped = bytes;
        flipped[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
        EXPECT_NE(crc32c(flipped), crc32c(bytes)) << bit;
    }
}

}  // namespace
}  // namespace holdfast::base
