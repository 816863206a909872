#include "values/hex.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace holdfast {
namespace {

TEST(HexTest, WritesTwoLowerCaseDigitsForEveryByte) {
    EXPECT_EQ(to_hex({}), "");
    EXPECT_EQ(to_hex(std::array<std::uint8_t, 4>{0x00, 0x0f, 0xa5, 0xff}), "000fa5ff");
}

TEST(HexTest, EveryByteComesBack) {
    for (unsigned value = 0; value < 256; ++value) {
        const std::array bytes{static_cast<std::uint8_t>(value)};
        std::array<std::uint8_t, 1> back{};
        ASSERT_TRUE(from_hex(to_hex(bytes), back));
        EXPECT_EQ(back, bytes);
    }
}

TEST(HexTest, ReadsUpperCaseToo) {
    std::array<std::uint8_t, 3> bytes{};
    ASSERT_TRUE(from_hex("aBCdEF", bytes));
    EXPECT_EQ(to_hex(bytes), "abcdef");
}

TEST(HexTest, RefusesEverythingElse) {
    for (const std::string_view text :
         {"", "a", "abc", "abcde", "0x12", "g000", "000g", " 123", "12 4", "-123", "ab\ncd"}) {
        std::array<std::uint8_t, 2> bytes{};
        EXPECT_FALSE(from_hex(text, bytes)) << text;
    }
}

}  // namespace
}  // namespace holdfast
