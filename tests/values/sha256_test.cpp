// SHA-256 against the vectors of FIPS 180-4 and NIST's examples, around every length where padding changes, and in
// pieces that end at every boundary.

#include "values/sha256.hpp"

#include "values/hex.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {
namespace {

constexpr std::string_view hash_of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string hash(std::string_view text) {
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    return to_hex(sha256(bytes));
}

TEST(Sha256Test, AgreesWithThePublishedVectors) {
    EXPECT_EQ(hash(""), hash_of_nothing);
    EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hash("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
                   "mnopqrstnopqrstu"),
              "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    EXPECT_EQ(hash("\xbd"), "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b");
}

TEST(Sha256Test, AgreesWhereThePaddingChanges) {
    const std::vector<std::pair<std::size_t, std::string_view>> lengths{
        {1, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
        {54, "a3f01b6939256127582ac8ae9fb47a382a244680806a3f613a118851c1ca1d47"},
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {57, "f13b2d724659eb3bf47f2dd6af1accc87b81f09f59f2b75e5c0bed6589dfe8c6"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
        {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
        {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
        {127, "c57e9278af78fa3cab38667bef4ce29d783787a2f731d4e12200270f0c32320a"},
        {128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e"},
        {129, "c12cb024a2e5551cca0e08fce8f1c5e314555cc3fef6329ee994a3db752166ae"},
    };
    for (const auto& [length, expected] : lengths) EXPECT_EQ(hash(std::string(length, 'a')), expected) << length;
}

TEST(Sha256Test, DoesNotDependOnWhereThePiecesEnd) {
    constexpr std::size_t length = 129;
    constexpr std::string_view expected = "c12cb024a2e5551cca0e08fce8f1c5e314555cc3fef6329ee994a3db752166ae";
    const std::vector<std::uint8_t> bytes(length, 'a');
    const std::span all(bytes);
    for (std::size_t first = 0; first <= length; ++first) {
        for (std::size_t second = first; second <= length; ++second) {
            Sha256 hash;
            hash.update(all.first(first));
            hash.update(all.subspan(first, second - first));
            hash.update(all.subspan(second));
            EXPECT_EQ(to_hex(hash.finish()), expected) << first << " and " << second;
        }
    }
}

TEST(Sha256Test, AgreesByteByByte) {
    constexpr std::string_view text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    Sha256 hash;
    for (const char letter : text) {
        const auto byte = static_cast<std::uint8_t>(letter);
        hash.update({&byte, 1});
    }
    EXPECT_EQ(to_hex(hash.finish()), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(to_hex(Sha256().finish()), hash_of_nothing);
}

TEST(Sha256Test, AgreesOnAMillionLetters) {
    EXPECT_EQ(hash(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace holdfast
