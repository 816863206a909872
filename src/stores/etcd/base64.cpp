#include "stores/etcd/base64.hpp"

#include <array>
#include <cstdint>

namespace holdfast::stores::etcd {
namespace {

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t not_a_digit = 64;

constexpr std::array<std::uint8_t, 256> values = [] {
    std::array<std::uint8_t, 256> all{};
    all.fill(not_a_digit);
    std::uint8_t value = 0;
    for (const char digit : digits) all[static_cast<std::uint8_t>(digit)] = value++;
    return all;
}();

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
    const auto byte = [&](std::size_t at) { return std::uint32_t{static_cast<std::uint8_t>(bytes[at])}; };
    const auto digit = [](std::uint32_t bits, unsigned shift) { return digits[(bits >> shift) & 63U]; };
    std::size_t at = 0;
    for (; at + 3 <= bytes.size(); at += 3) {
        const std::uint32_t bits = byte(at) << 16U | byte(at + 1) << 8U | byte(at + 2);
        const std::array<char, 4> four{digit(bits, 18), digit(bits, 12), digit(bits, 6), digit(bits, 0)};
        out.append(four.data(), four.size());
    }
    const std::size_t rest = bytes.size() - at;
    if (rest == 0) return;
    const std::uint32_t bits = byte(at) << 16U | (rest == 2 ? byte(at + 1) << 8U : 0U);
    out += digit(bits, 18);
    out += digit(bits, 12);
    out += rest == 2 ? digit(bits, 6) : '=';
    out += '=';
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    std::size_t digits_in = text.size();
    for (int i = 0; i < 2 && digits_in > 0 && text[digits_in - 1] == '='; ++i) --digits_in;
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3);
    std::uint32_t bits = 0;
    unsigned count = 0;
    for (const char c : text.substr(0, digits_in)) {
        const std::uint8_t value = values[static_cast<std::uint8_t>(c)];
        if (value == not_a_digit) return std::nullopt;
        bits = bits << 6U | value;
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>(bits >> count & 0xffU);
    }
    return bytes;
}

}  // namespace holdfast::stores::etcd
