#include "support/matchers.hpp"
#include "values/text.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using tests::RefusedWith;

// Names are data, not paths: a store must be able to keep every one of these apart.
TEST(LockNameTest, AcceptsEverythingTheGrammarAllows) {
    for (const std::string_view text : {"x",
                                        "migrate/prod",
                                        "project/42/edit",
                                        "..x",
                                        "...",
                                        ".hidden/x.",
                                        "/",
                                        "//",
                                        "/etc/passwd",
                                        "a b",
                                        " ",
                                        "x ",
                                        " x",
                                        "*",
                                        "%2e%2e",
                                        "'; DROP TABLE locks; --",
                                        "{x}",
                                        "\"",
                                        "\\",
                                        "$(reboot)",
                                        "Gr\xc3\xbc\xc3\x9f"
                                        "e",
                                        "\xf0\x9f\x94\x92",
                                        "\xc2\xa0",
                                        "-n",
                                        "--",
                                        "CON",
                                        "x.lock"}) {
        const auto name = LockName::parse(text);
        ASSERT_TRUE(name) << text;
        EXPECT_EQ(name->text(), text);
    }
}

// A caller that passes `../x` has put a path where a name belongs.
TEST(LockNameTest, HasNoStepsOfAPath) {
    for (const std::string_view text : {".", "..", "../x", "./x", "x/..", "x/.", "/..", "a/../b", "../../etc/passwd"})
        EXPECT_THAT(LockName::parse(text), RefusedWith(Errc::name_invalid)) << text;
}

TEST(LockNameTest, HasOneTo255Bytes) {
    EXPECT_THAT(LockName::parse(""), RefusedWith(Errc::name_invalid));
    EXPECT_TRUE(LockName::parse(std::string(255, 'x')));
    EXPECT_THAT(LockName::parse(std::string(256, 'x')), RefusedWith(Errc::name_invalid));
    EXPECT_THAT(LockName::parse(std::string(1'000'000, 'x')), RefusedWith(Errc::name_invalid));
    std::string umlauts;
    while (umlauts.size() < 256) umlauts += "\xc3\xbc";
    EXPECT_THAT(LockName::parse(umlauts), RefusedWith(Errc::name_invalid)) << "bytes count, not characters";
    EXPECT_TRUE(LockName::parse(std::string_view(umlauts).substr(0, 254)));
}

TEST(LockNameTest, HasNoControlCharacters) {
    for (int c = 0; c < 0x20; ++c)
        EXPECT_THAT(LockName::parse(std::string("a") + static_cast<char>(c)), RefusedWith(Errc::name_invalid)) << c;
    EXPECT_THAT(LockName::parse("a\x7f"), RefusedWith(Errc::name_invalid));
    EXPECT_THAT(LockName::parse("a\xc2\x85"), RefusedWith(Errc::name_invalid));
    EXPECT_THAT(LockName::parse(std::string_view("a\0b", 3)), RefusedWith(Errc::name_invalid));
}

TEST(LockNameTest, IsUtf8) {
    for (const std::string_view text : {"caf\xe9", "\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xc3"})
        EXPECT_THAT(LockName::parse(text), RefusedWith(Errc::name_invalid));
}

TEST(LockNameTest, ARefusalIsSafeToPrint) {
    for (const std::string_view text : {"a\x1b[2J", "a\nb", "\xff\xfe", "a\xc2\x9b"}) {
        const auto name = LockName::parse(text);
        ASSERT_FALSE(name);
        EXPECT_TRUE(is_utf8(name.error().message) && !has_control(name.error().message));
    }
    EXPECT_LT(LockName::parse(std::string(1'000'000, '\x01')).error().message.size(), 2000U);
}

TEST(LockNameTest, ComparesBytes) {
    const auto name = [](std::string_view text) { return tests::must(LockName::parse(text)); };
    EXPECT_EQ(name("x"), name("x"));
    EXPECT_NE(name("x"), name("X"));
    EXPECT_NE(name("x"), name("x "));
    EXPECT_NE(name("\xc3\xbc"), name("u\xcc\x88")) << "composed and decomposed are two names";
    EXPECT_LT(name("Z"), name("a"));
}

}  // namespace
}  // namespace holdfast
