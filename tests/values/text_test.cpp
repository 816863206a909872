// Text as it comes from people and goes to terminals: UTF-8, control characters, durations.

#include "values/text.hpp"

#include "support/matchers.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using tests::RefusedWith;

TEST(Utf8Test, AcceptsTheFirstAndLastCharacterOfEveryLength) {
    for (const std::string_view text : {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                                        "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
                                        "Gr\xc3\xbc\xc3\x9f"
                                        "e \xf0\x9f\x94\x92"})
        EXPECT_TRUE(is_utf8(text)) << text;
    EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
}

TEST(Utf8Test, RefusesOverlongForms) {
    for (const std::string_view text : {"\xc0\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x80\xaf",
                                        "\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x80\x80\xaf", "\xf0\x8f\xbf\xbf"})
        EXPECT_FALSE(is_utf8(text));
}

TEST(Utf8Test, RefusesSurrogates) {
    for (const std::string_view text : {"\xed\xa0\x80", "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbf\xbf"})
        EXPECT_FALSE(is_utf8(text));
}

TEST(Utf8Test, RefusesWhatIsAboveTheLastCharacter) {
    for (const std::string_view text : {"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe", "\xff"})
        EXPECT_FALSE(is_utf8(text));
}

TEST(Utf8Test, RefusesStrayAndMissingContinuations) {
    for (const std::string_view text : {"\x80", "\xbf", "a\x80", "\xc3", "\xc3(", "\xe2\x82", "\xe2(\xa1",
                                        "\xf0\x9f\x94", "\xf0\x9f(\x92", "\xf0(\x8c\xbc", "ok\xc3"})
        EXPECT_FALSE(is_utf8(text));
}

TEST(ControlTest, FindsC0DeleteAndC1) {
    for (char c = 0; c < 0x20; ++c) EXPECT_TRUE(has_control(std::string("a") + c + "b")) << static_cast<int>(c);
    EXPECT_TRUE(has_control("\x7f"));
    for (int c = 0x80; c < 0xa0; ++c) EXPECT_TRUE(has_control(std::string("a\xc2") + static_cast<char>(c)));
}

TEST(ControlTest, LeavesOrdinaryTextAlone) {
    for (const std::string_view text : {"", " ~", "\xc2\xa0", "\xc3\x80", "\xe2\x80\x9b", "\xf0\x9f\x94\x92", "../x"})
        EXPECT_FALSE(has_control(text)) << text;
}

TEST(PrintableTest, LeavesOrdinaryTextAlone) {
    for (const std::string_view text : {"", "migrate/prod",
                                        "Gr\xc3\xbc\xc3\x9f"
                                        "e \xf0\x9f\x94\x92"})
        EXPECT_EQ(printable(text), text);
}

TEST(PrintableTest, ShowsWhatWouldMoveATerminal) {
    EXPECT_EQ(printable("a\nb\tc"), "a\\nb\\tc");
    EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
    EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
    EXPECT_EQ(printable("\x7f\r"), "\\x7f\\x0d");
    EXPECT_EQ(printable("\xc2\x9b"
                        "31m"),
              "\\xc2\\x9b31m");
}

TEST(PrintableTest, ShowsWhatNobodyWouldSee) {
    EXPECT_EQ(printable("prod\xe2\x80\xaexyz"), "prod\\u202exyz") << "right to left";
    EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x81\xa9"), "\\u2066\\u2069") << "isolates";
    EXPECT_EQ(printable("a\xe2\x80\x8b\xe2\x80\x8d\xef\xbb\xbf"), "a\\u200b\\u200d\\ufeff") << "zero width";
    EXPECT_EQ(printable("\xe2\x80\xa8\xe2\x80\xa9"), "\\u2028\\u2029") << "separators";
    EXPECT_EQ(printable("\xc2\xad\xd8\x9c"), "\\u00ad\\u061c");
    EXPECT_EQ(printable("\xf3\xa0\x81\xa1"), "\\udb40\\udc61") << "a tag";
    // The neighbours are seen.
    for (const std::string_view text :
         {"\xe2\x80\x8a", "\xe2\x80\x90", "\xe2\x80\xa7", "\xe2\x80\xaf", "\xc2\xae", "\xef\xbf\xbd", "\xd8\x9d"})
        EXPECT_EQ(printable(text), text);
}

TEST(PrintableTest, MakesAnyBytesHarmless) {
    for (int first = 0; first < 256; ++first)
        for (int second = 0; second < 256; ++second) {
            const std::string text{static_cast<char>(first), static_cast<char>(second)};
            const std::string safe = printable(text);
            EXPECT_TRUE(is_utf8(safe) && !has_control(safe)) << first << " " << second;
        }
}

TEST(DurationTest, ReadsWhatPeopleWrite) {
    const std::vector<std::pair<std::string_view, milliseconds>> good{{"0", 0ms},
                                                                      {"0s", 0ms},
                                                                      {"500ms", 500ms},
                                                                      {"30s", 30s},
                                                                      {"5m", 5min},
                                                                      {"1h30m", 90min},
                                                                      {"2d", 48h},
                                                                      {"1d1h1m1s1ms", 90061001ms},
                                                                      {"90m", 90min},
                                                                      {"1h1ms", 1h + 1ms},
                                                                      {"007s", 7s},
                                                                      {"99999999999d", std::chrono::days{99999999999}},
                                                                      {"1s999999ms", 1s + 999999ms}};
    for (const auto& [text, expected] : good) EXPECT_EQ(tests::must(parse_duration(text)), expected) << text;
}

TEST(DurationTest, RefusesWhatCouldBeMisread) {
    for (const std::string_view text :
         {"",    " ",       "5",     "00",   "s",    "ms",    "-5s",  "+5s",   "5 s",  " 5s",
          "5s ", "5S",      "5M",    "5min", "1.5h", "1,5h",  "1e3s", "0x10s", "5w",   "5y",
          "5us", "forever", "30s5m", "1m1h", "5m5m", "1ms1s", "1s1",  "1h30",  "5s\n", "\xef\xbc\x95s",
          "inf", "nan"})
        EXPECT_THAT(parse_duration(text), RefusedWith(Errc::usage)) << text;
    EXPECT_THAT(parse_duration(std::string_view("5s\0", 3)), RefusedWith(Errc::usage));
}

TEST(DurationTest, RefusesNumbersThatWouldOverflow) {
    EXPECT_THAT(parse_duration("100000000000d"), RefusedWith(Errc::usage));
    EXPECT_THAT(parse_duration("9223372036854775807ms"), RefusedWith(Errc::usage));
    EXPECT_THAT(parse_duration("18446744073709551617s"), RefusedWith(Errc::usage));
    EXPECT_THAT(parse_duration(std::string(10000, '9') + "d"), RefusedWith(Errc::usage));
    // The largest that is accepted in every unit at once still fits.
    EXPECT_GT(tests::must(parse_duration("99999999999d99999999999h99999999999m99999999999s99999999999ms")),
              std::chrono::days{99999999999});
}

TEST(ToWordsTest, SaysDurationsAsPeopleDo) {
    const std::vector<std::pair<milliseconds, std::string_view>> cases{{0ms, "0 ms"},
                                                                       {850ms, "850 ms"},
                                                                       {999ms, "999 ms"},
                                                                       {1s, "1 s"},
                                                                       {24s, "24 s"},
                                                                       {60s, "1 min"},
                                                                       {330s, "5 min 30 s"},
                                                                       {1h, "1 h"},
                                                                       {2h, "2 h"},
                                                                       {90min, "1 h 30 min"},
                                                                       {24h, "1 d"},
                                                                       {76h, "3 d 4 h"},
                                                                       {Ttl::longest, "366 d"}};
    for (const auto& [time, words] : cases) EXPECT_EQ(to_words(time), words);
}

TEST(ToWordsTest, RoundsUpSoThatWhatIsLeftNeverReadsAsNothing) {
    EXPECT_EQ(to_words(1001ms), "2 s");
    EXPECT_EQ(to_words(59'001ms), "1 min");
    EXPECT_EQ(to_words(59min + 59s + 1ms), "1 h");
    EXPECT_EQ(to_words(1ms), "1 ms");
}

}  // namespace
}  // namespace holdfast
