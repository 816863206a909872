#include "values/text.hpp"

#include "values/hex.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

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

struct Unit {
    std::string_view name;
    std::chrono::milliseconds length;
};
constexpr std::array units{Unit{"d", std::chrono::hours{24}}, Unit{"h", std::chrono::hours{1}},
                           Unit{"m", std::chrono::minutes{1}}, Unit{"s", std::chrono::seconds{1}},
                           Unit{"ms", std::chrono::milliseconds{1}}};

}  // namespace

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
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
    // Rounded up: "expires in 0 s" would be wrong for what has not expired.
    const auto s = ceil<seconds>(time).count();
    if (s < 60) return part(s, "s");
    if (s < 3600) return two(s / 60, "min", s % 60, "s");
    if (s < 86400) return two(s / 3600, "h", s % 3600 / 60, "min");
    return two(s / 86400, "d", s % 86400 / 3600, "h");
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
            safe += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return safe;
}

}  // namespace holdfast
