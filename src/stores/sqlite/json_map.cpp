#include "stores/sqlite/json_map.hpp"

#include "values/hex.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace holdfast::stores::sqlite {
namespace {

void append_string(std::string& json, std::string_view text) {
    json += '"';
    for (const char c : text) {
        if (c == '"' || c == '\\')
            (json += '\\') += c;
        else if (static_cast<unsigned char>(c) < 0x20)
            json += fmt::format("\\u{:04x}", static_cast<int>(c));
        else
            json += c;
    }
    json += '"';
}

bool take(std::string_view& rest, char expected) {
    if (!rest.starts_with(expected)) return false;
    rest.remove_prefix(1);
    return true;
}

/// The character after a backslash, which was read already.
std::optional<char> take_escape(std::string_view& rest) {
    if (take(rest, '"')) return '"';
    if (take(rest, '\\')) return '\\';
    std::array<std::uint8_t, 2> unit{};
    if (!take(rest, 'u') || !from_hex(rest.substr(0, 4), unit) || unit[0] != 0) return std::nullopt;
    rest.remove_prefix(4);
    return static_cast<char>(unit[1]);
}

std::optional<std::string> take_string(std::string_view& rest) {
    if (!take(rest, '"')) return std::nullopt;
    std::string text;
    while (!take(rest, '"')) {
        if (rest.empty()) return std::nullopt;
        if (take(rest, '\\')) {
            const auto escaped = take_escape(rest);
            if (!escaped) return std::nullopt;
            text += *escaped;
        } else {
            text += rest.front();
            rest.remove_prefix(1);
        }
    }
    return text;
}

}  // namespace

std::string to_json(const std::map<std::string, std::string>& map) {
    std::string json = "{";
    for (const auto& [key, value] : map) {
        if (json.size() > 1) json += ',';
        append_string(json, key);
        json += ':';
        append_string(json, value);
    }
    return json + "}";
}

std::optional<std::map<std::string, std::string>> from_json(std::string_view text) {
    std::map<std::string, std::string> map;
    std::string_view rest = text;
    if (!take(rest, '{')) return std::nullopt;
    while (!take(rest, '}')) {
        if (!map.empty() && !take(rest, ',')) return std::nullopt;
        auto key = take_string(rest);
        if (!key || !take(rest, ':')) return std::nullopt;
        auto value = take_string(rest);
        if (!value) return std::nullopt;
        map.insert_or_assign(std::move(*key), std::move(*value));
    }
    // Each map has exactly one text: any other order, repetition or escape was not written by Holdfast.
    if (!rest.empty() || to_json(map) != text) return std::nullopt;
    return map;
}

}  // namespace holdfast::stores::sqlite
