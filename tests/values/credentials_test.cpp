// Credentials and their secret half: exact to read, and never repeated to anybody.

#include "support/matchers.hpp"
#include "values/hex.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::RefusedWith;

TEST(CredentialsTest, TextComesBack) {
    const Credentials credentials = Credentials::random();
    const std::string text = credentials.reveal();
    EXPECT_EQ(text.size(), 36U + 1 + 32);
    EXPECT_EQ(text, credentials.lock_id.text() + "." + credentials.key.reveal());
    EXPECT_EQ(tests::must(Credentials::parse(text)), credentials);
}

TEST(CredentialsTest, ARefusalNeverRepeatsTheSecret) {
    const Credentials credentials = Credentials::random();
    const std::string id = credentials.lock_id.text();
    const std::string key = credentials.key.reveal();
    for (const std::string& text : {key, id + key, id + ":" + key, id + "." + key + "0", id + "." + key + "\n",
                                    " " + id + "." + key, "x" + id + "." + key, key + "." + id, id + ".." + key,
                                    "." + key, id + "." + key + ".", id + " " + key, id.substr(1) + "." + key}) {
        const auto parsed = Credentials::parse(text);
        ASSERT_THAT(parsed, RefusedWith(Errc::usage)) << "of " << text.size() << " bytes";
        EXPECT_THAT(parsed.error().message, Not(HasSubstr(key)));
        EXPECT_THAT(parsed.error().message, Not(HasSubstr(key.substr(0, 8))));
    }
}

TEST(CredentialsTest, RefusesWhatIsCut) {
    const std::string text = Credentials::random().reveal();
    for (std::size_t size = 0; size < text.size(); ++size)
        EXPECT_THAT(Credentials::parse(std::string_view(text).substr(0, size)), RefusedWith(Errc::usage));
}

TEST(LeaseKeyTest, IsStoredAsTheHashOfItsBytes) {
    LeaseKey::Bytes bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
    // SHA-256 of 00 01 … 0f.
    EXPECT_EQ(to_hex(LeaseKey(bytes).hash().digest),
              "be45cb2605bf36bebde684841a28f0fd43c69850a3dce5fedba69928ee3a8991");
    EXPECT_EQ(LeaseKey(bytes).reveal(), "000102030405060708090a0b0c0d0e0f");
}

TEST(LeaseKeyTest, HashesAreEqualOnlyInAllTheirBytes) {
    const KeyHash hash = LeaseKey::random().hash();
    EXPECT_EQ(hash, KeyHash{hash.digest});
    for (std::size_t bit = 0; bit < 256; ++bit) {
        KeyHash other = hash;
        other.digest[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
        EXPECT_NE(hash, other);
    }
}

}  // namespace
}  // namespace holdfast
