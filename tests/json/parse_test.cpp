// What comes from outside is bounded and unambiguous before anything is made of it.
#include "json/parse.hpp"

#include "json/fields.hpp"
#include "values/text.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::json {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string parse_refusal(std::string_view text, const ParseLimits& limits = {}) {
    const auto node = parse(text, limits);
    if (node) return "";
    EXPECT_EQ(node.error().code, Errc::usage);
    return node.error().message;
}

TEST(ParseJson, RefusesWhatIsNotExactlyOneDocument) {
    for (const char* text :
         {"",   " ",  "{",  "{}}",     "{} {}",  "[1,]",     "{\"a\":1,}", "'a'",      "{a:1}",       "nul",
          "01", "+1", "1.", "\"\\x\"", "\"\n\"", "// no\n1", "NaN",        "\"\xff\"", "\"\\ud800\"", "\xef\xbb\xbf{}"})
        EXPECT_THAT(parse_refusal(text), HasSubstr("not JSON")) << text;
    for (const char* text : {"{}", " [ ] \n", "null", "1", "\"\\ud83d\\udd12\""})
        EXPECT_EQ(parse_refusal(text), "") << text;
}

TEST(ParseJson, RefusesAKeyThatIsThereTwice) {
    EXPECT_EQ(parse_refusal(R"({"ttl_ms":1,"name":"a","ttl_ms":2})"), "\"ttl_ms\" is there twice");
    EXPECT_EQ(parse_refusal(R"([{"a":{"b":1,"\u0062":2}}])"), "\"b\" is there twice")
        << "the same key, written differently";
    EXPECT_EQ(parse_refusal(R"({"a":{"b":1},"c":{"b":1}})"), "");
    EXPECT_THAT(parse_refusal("{\"\xe2\x80\xae\":1,\"\xe2\x80\xae\":1}"), Not(HasSubstr("\xe2\x80\xae")));
}

TEST(ParseJson, RefusesWhatIsLargerOrDeeperThanItsLimits) {
    const std::string large = "\"" + std::string(std::size_t{1} << 20, 'x') + "\"";
    EXPECT_THAT(parse_refusal(large), HasSubstr("larger than 1048576"));
    EXPECT_EQ(parse_refusal("\"1234\"", {.bytes = 6}), "");
    EXPECT_NE(parse_refusal("\"12345\"", {.bytes = 6}), "");
    const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
    EXPECT_EQ(parse_refusal(nested(16)), "");
    EXPECT_NE(parse_refusal(nested(17)), "");
    EXPECT_NE(parse_refusal(nested(500'000)), "");
    EXPECT_NE(parse_refusal(std::string(500'000, '{')), "");
}

TEST(ParseJson, RepeatsNoValueInItsRefusal) {
    EXPECT_THAT(parse_refusal(R"({"lease":"hunter2"x)"), Not(HasSubstr("hunter2")));
}

TEST(ParseJson, ALongTextThatIsReadInPiecesIsWhole) {
    std::string text;
    for (int i = 0; i < 5000; ++i) text += fmt::format("{} \\u00fc\\n", i);
    const auto node = parse(fmt::format(R"({{"{0}":"{0}"}})", text));
    ASSERT_TRUE(node);
    const auto& [key, value] = node->object()->front();
    EXPECT_EQ(key, std::get<std::string>(value.value));
    EXPECT_THAT(key, HasSubstr("4999 ü\n"));
}

/// Why the field `key` of `text` is refused by `read`.
template <class Read>
std::string field_refusal(const std::string& text, Read read) {
    const auto node = parse(text);
    EXPECT_TRUE(node) << text;
    Fields in(*node, "at");
    read(in);
    return in.error() ? in.error()->message : "";
}

TEST(JsonFields, ANumberIsWholeAndBelowTheLimitOfDoubles) {
    const auto number = [](Fields& in) { static_cast<void>(in.number("n")); };
    for (const char* good : {"0", "1", "9007199254740991", "-0"})
        EXPECT_EQ(field_refusal(fmt::format(R"({{"n":{}}})", good), number), "") << good;
    for (const char* bad : {"-1", "9007199254740992", "9223372036854775807", "18446744073709551615", "1.0", "1e3",
                            "0.5", "1e999", "99999999999999999999999999", "\"1\"", "true", "[1]", "{}"})
        EXPECT_EQ(field_refusal(fmt::format(R"({{"n":{}}})", bad), number),
                  "at.n is not a whole number from 0 to 2^53-1")
            << bad;
    EXPECT_EQ(field_refusal("{}", number), "at.n is missing");
    EXPECT_EQ(field_refusal(R"({"n":null})", number), "at.n is missing");
    EXPECT_EQ(field_refusal("[]", number), "at is not an object");
}

TEST(JsonFields, ATimeHasOneForm) {
    EXPECT_EQ(parse_time("2026-01-31T12:00:00.123Z"), Instant{std::chrono::milliseconds{1'769'860'800'123}});
    EXPECT_EQ(parse_time("2024-02-29T23:59:59.999Z").has_value(), true);
    for (const char* bad : {"", "2026-01-31", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123",
                            "2026-02-30T12:00:00.123Z", "2026-13-01T12:00:00.123Z", "2026-01-31T24:00:00.000Z",
                            "2026-01-31T12:60:00.000Z", "2026-01-31T12:00:60.000Z", "2026-01-31t12:00:00.123Z",
                            "2026-01-31T12:00:00.12 Z", "+026-01-31T12:00:00.123Z", "2026-01-31T12:00:00.123ZZ"})
        EXPECT_FALSE(parse_time(bad)) << bad;
}

TEST(JsonFields, TheFirstThatDoesNotFitIsNamed) {
    const auto message = field_refusal(R"({"a":1,"b":{"c":2},"d":"x"})", [](Fields& in) {
        static_cast<void>(in.text_or_empty("d"));
        static_cast<void>(in.texts("b"));
        static_cast<void>(in.text("a"));
    });
    EXPECT_EQ(message, "at.b.c is not a text");
    EXPECT_EQ(field_refusal(R"({"a":1,"\u202e":2})",
                            [](Fields& in) {
                                static_cast<void>(in.number("a"));
                                in.refuse_others();
                            }),
              "at.\\u202e is not a field of this request");
}

}  // namespace
}  // namespace holdfast::json
