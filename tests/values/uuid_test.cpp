#include "support/matchers.hpp"

#include <gtest/gtest.h>

#include <set>

namespace holdfast {
namespace {

using tests::RefusedWith;

TEST(UuidTest, TextComesBack) {
    for (int i = 0; i < 100; ++i) {
        const LockId id = LockId::random();
        EXPECT_EQ(tests::must(LockId::parse(id.text())), id);
    }
    EXPECT_EQ(LockId{}.text(), "00000000-0000-0000-0000-000000000000");
    constexpr std::string_view text = "0f1e2d3c-4b5a-4678-9abc-def012345678";
    EXPECT_EQ(tests::must(LockId::parse(text)).text(), text);
    EXPECT_EQ(tests::must(StoreId::parse(text)).text(), text);
    EXPECT_EQ(tests::must(LockId::parse("0F1E2D3C-4B5A-4678-9ABC-DEF012345678")).text(), text);
}

TEST(UuidTest, RandomOnesAreOfVersion4AndDiffer) {
    std::set<LockId> seen;
    for (int i = 0; i < 1000; ++i) {
        const LockId id = LockId::random();
        EXPECT_EQ(id.bytes()[6] >> 4, 4);
        EXPECT_EQ(id.bytes()[8] >> 6, 2);
        EXPECT_EQ(id.text()[14], '4');
        EXPECT_TRUE(seen.insert(id).second);
    }
}

TEST(UuidTest, RandomOnesUseEveryOtherBit) {
    LockId::Bytes ones{};
    LockId::Bytes zeros{};
    for (int i = 0; i < 1000; ++i) {
        const LockId id = LockId::random();
        for (std::size_t k = 0; k < ones.size(); ++k) {
            ones[k] |= id.bytes()[k];
            zeros[k] |= static_cast<std::uint8_t>(~id.bytes()[k]);
        }
    }
    for (std::size_t k = 0; k < ones.size(); ++k) {
        EXPECT_EQ(ones[k], k == 6 ? 0x4f : k == 8 ? 0xbf : 0xff);
        EXPECT_EQ(zeros[k], k == 6 ? 0xbf : k == 8 ? 0x7f : 0xff);
    }
}

TEST(UuidTest, RefusesEverythingElse) {
    for (const std::string_view text :
         {"", "0f1e2d3c4b5a46789abcdef012345678", "0f1e2d3c-4b5a-4678-9abc-def01234567",
          "0f1e2d3c-4b5a-4678-9abc-def0123456789", "{0f1e2d3c-4b5a-4678-9abc-def012345678}",
          "0f1e2d3c-4b5a-4678-9abc-def01234567g", "0f1e2d3-c4b5a-4678-9abc-def012345678",
          "0f1e2d3c_4b5a_4678_9abc_def012345678", " 0f1e2d3c-4b5a-4678-9abc-def01234567",
          "------------------------------------"})
        EXPECT_THAT(LockId::parse(text), RefusedWith(Errc::usage)) << text;
}

}  // namespace
}  // namespace holdfast
