#include "values/text.hpp"

#include "values/escapes.hpp"
#include "values/hex.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace holdfast {
namespace {

/// Length of the well-formed sequence at the start of `text`, or 0.
std::size_t utf8_sequence(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const std::uint8_t lead = at(0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
    if (length == 0 || lead > 0xf4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((at(i) & 0xc0) != 0x80) return 0;
    // The first continuation byte excludes overlong forms, surrogates and what is above U+10FFFF.
    if ((lead == 0xe0 && at(1) < 0xa0) || (lead == 0xed && at(1) > 0x9f) || (lead == 0xf0 && at(1) < 0x90) ||
        (lead == 0xf4 && at(1) > 0x8f))
        return 0;
    return length;
}

/// Length of the control character at the start of `text`, or 0.
std::size_t control_sequence(std::string_view text) {
    const auto lead = static_cast<std::uint8_t>(text[0]);
    if (lead < 0x20 || lead == 0x7f) return 1;
    const bool c1 = lead == 0xc2 && text.size() > 1 && static_cast<std::uint8_t>(text[1]) < 0xa0;
    return c1 ? 2 : 0;
}

/// The code point of a well-formed sequence.
char32_t code_point(std::string_view sequence) {
    constexpr std::array<std::uint8_t, 5> lead_bits{0, 0x7f, 0x1f, 0x0f, 0x07};
    char32_t code = static_cast<std::uint8_t>(sequence[0]) & lead_bits[sequence.size()];
    for (const char byte : sequence.substr(1)) code = (code << 6U) | (static_cast<std::uint8_t>(byte) & 0x3fU);
    return code;
}

/// Characters that are invisible, or change the direction of the text around them, so that a reader sees another text
/// than the one that is there. Unicode's Default_Ignorable_Code_Point, and the separators of lines, paragraphs and
/// annotations.
bool is_unseen(char32_t code) {
    struct Range {
        char32_t first;
        char32_t last;
    };
    constexpr std::array unseen{
        Range{0xad, 0xad},       Range{0x34f, 0x34f},   Range{0x61c, 0x61c},     Range{0x115f, 0x1160},
        Range{0x17b4, 0x17b5},   Range{0x180b, 0x180f}, Range{0x200b, 0x200f},   Range{0x2028, 0x202e},
        Range{0x2060, 0x206f},   Range{0x3164, 0x3164}, Range{0xfe00, 0xfe0f},   Range{0xfeff, 0xfeff},
        Range{0xffa0, 0xffa0},   Range{0xfff0, 0xfffb}, Range{0x1bca0, 0x1bca3}, Range{0x1d173, 0x1d17a},
        Range{0xe0000, 0xe0fff},
    };
    return std::ranges::any_of(unseen, [&](const Range& range) { return range.first <= code && code <= range.last; });
}

/// `\u202e`; above U+FFFF two of them, as in JSON.
std::string unicode_escape(char32_t code) {
    const auto unit = [](char32_t value) {
        const std::array raw{static_cast<std::uint8_t>(value >> 8U), static_cast<std::uint8_t>(value & 0xffU)};
        return "\\u" + to_hex(raw);
    };
    if (code <= 0xffff) return unit(code);
    return unit(0xd800 + ((code - 0x10000) >> 10U)) + unit(0xdc00 + ((code - 0x10000) & 0x3ffU));
}

struct Unit {
    std::string_view name;
    std::chrono::milliseconds length;
};
constexpr std::array units{Unit{"d", std::chrono::hours{24}}, Unit{"h", std::chrono::hours{1}},
                           Unit{"m", std::chrono::minutes{1}}, Unit{"s", std::chrono::seconds{1}},
                           Unit{"ms", std::chrono::milliseconds{1}}};

/// The digits of `text` from `at` on; absent if anything else is among them.
std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t count) {
    const std::string_view digits = text.substr(at, count);
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    int number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
}

}  // namespace

bool is_utf8(std::string_view text) {
    constexpr std::uint64_t beyond_ascii = 0x8080808080808080U;
    while (!text.empty()) {
        // Most text is ASCII: eight characters at once.
        std::uint64_t eight = 0;
        if (text.size() >= sizeof eight) {
            std::memcpy(&eight, text.data(), sizeof eight);
            if ((eight & beyond_ascii) == 0) {
                text.remove_prefix(sizeof eight);
                continue;
            }
        }
        const std::size_t length = utf8_sequence(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

bool has_control(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i)
        if (control_sequence(text.substr(i)) > 0) return true;
    return false;
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
    const auto bad = [&](std::string_view why) {
        return fail(Errc::usage, "\"" + printable(text) + "\" is not a duration: " + std::string(why) +
                                     "; write 500ms, 30s, 5m, 1h30m or 2d");
    };
    if (text.empty()) return bad("it is empty");
    if (text == "0") return std::chrono::milliseconds{0};

    std::chrono::milliseconds total{0};
    std::size_t next_unit = 0;
    for (std::string_view rest = text; !rest.empty();) {
        std::size_t digits = 0;
        std::int64_t number = 0;
        for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9'; ++digits) {
            // Eleven digits of days would still fit into 64 bits of milliseconds.
            if (digits == 11) return bad("the number is too large");
            number = number * 10 + (rest[digits] - '0');
        }
        if (digits == 0) return bad("a number is missing");
        rest.remove_prefix(digits);

        std::size_t letters = 0;
        while (letters < rest.size() && rest[letters] >= 'a' && rest[letters] <= 'z') ++letters;
        const std::string_view name = rest.substr(0, letters);
        rest.remove_prefix(letters);
        while (next_unit < units.size() && units[next_unit].name != name) ++next_unit;
        if (next_unit == units.size())
            return bad(name.empty() ? "a unit is missing" : "the unit is unknown or out of order");
        total += number * units[next_unit++].length;
    }
    return total;
}

std::string to_words(std::chrono::milliseconds time) {
    using namespace std::chrono;
    const auto part = [](auto count, std::string_view unit) { return std::to_string(count) + " " + std::string(unit); };
    const auto two = [&](auto large, std::string_view large_unit, auto small, std::string_view small_unit) {
        return part(large, large_unit) + (small > 0 ? " " + part(small, small_unit) : "");
    };
    if (time < seconds{1}) return part(time.count(), "ms");
    // Rounded up: "expires in 0 s" would be wrong for a lease that has not expired.
    const auto s = ceil<seconds>(time).count();
    if (s < 60) return part(s, "s");
    if (s < 3600) return two(s / 60, "min", s % 60, "s");
    if (s < 86400) return two(s / 3600, "h", s % 3600 / 60, "min");
    return two(s / 86400, "d", s % 86400 / 3600, "h");
}

std::string clock_time(Instant at, Instant now) {
    const std::string text = to_rfc3339(at);
    const bool today = std::chrono::floor<std::chrono::days>(at) == std::chrono::floor<std::chrono::days>(now);
    return (today ? "" : text.substr(0, 10) + " ") + text.substr(11, 8) + " UTC";
}

std::optional<Instant> parse_time(std::string_view text) {
    constexpr std::string_view form = "0000-00-00T00:00:00.000Z";
    if (text.size() != form.size()) return std::nullopt;
    for (std::size_t i = 0; i < form.size(); ++i)
        if (form[i] != '0' && text[i] != form[i]) return std::nullopt;
    const auto year = digits_at(text, 0, 4);
    const auto month = digits_at(text, 5, 2);
    const auto day = digits_at(text, 8, 2);
    const auto hour = digits_at(text, 11, 2);
    const auto minute = digits_at(text, 14, 2);
    const auto second = digits_at(text, 17, 2);
    const auto millisecond = digits_at(text, 20, 3);
    if (!year || !month || !day || !hour || !minute || !second || !millisecond) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year{*year}, std::chrono::month{static_cast<unsigned>(*month)},
                                           std::chrono::day{static_cast<unsigned>(*day)}};
    if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
    return std::chrono::sys_days{date} + std::chrono::hours{*hour} + std::chrono::minutes{*minute} +
           std::chrono::seconds{*second} + std::chrono::milliseconds{*millisecond};
}

std::string end_of(std::string_view text, std::size_t max_bytes) {
    constexpr std::string_view ellipsis = "…";
    if (text.size() <= max_bytes) return std::string(text);
    text.remove_prefix(text.size() - (max_bytes - ellipsis.size()));
    const auto is_inside = [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; };
    while (!text.empty() && is_inside(text.front())) text.remove_prefix(1);
    return std::string(ellipsis) + std::string(text);
}

std::string printable(std::string_view text) {
    std::string safe;
    while (!text.empty()) {
        const std::size_t control = control_sequence(text);
        const std::size_t length = control > 0 ? control : utf8_sequence(text);
        if (control == 1 && text[0] == '\n') {
            safe += "\\n";
        } else if (control == 1 && text[0] == '\t') {
            safe += "\\t";
        } else if (control > 0 || length == 0) {
            for (const char byte : text.substr(0, length == 0 ? 1 : length)) {
                const std::array raw{static_cast<std::uint8_t>(byte)};
                safe += "\\x" + to_hex(raw);
            }
        } else {
            const char32_t code = code_point(text.substr(0, length));
            safe += is_unseen(code) ? unicode_escape(code) : std::string(text.substr(0, length));
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return safe;
}

std::string with_unicode_escapes(std::string_view text) {
    std::string safe;
    while (!text.empty()) {
        const std::size_t length = std::max<std::size_t>(utf8_sequence(text), 1);
        const std::string_view character = text.substr(0, length);
        const char32_t code = code_point(character);
        safe += control_sequence(character) > 0 || is_unseen(code) ? unicode_escape(code) : std::string(character);
        text.remove_prefix(length);
    }
    return safe;
}

}  // namespace holdfast
