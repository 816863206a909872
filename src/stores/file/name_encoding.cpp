#include "stores/file/name_encoding.hpp"

#include "values/hex.hpp"
#include "values/sha256.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace holdfast::stores::file {
namespace {

constexpr std::string_view readable = "n.";
constexpr std::string_view hashed = "h.";

/// Below the 255 bytes of most file systems, with room for those that add something of their own.
constexpr std::size_t longest = 200;

bool stays(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; }

std::string percent_encoded(std::string_view text) {
    std::string encoded;
    for (const char c : text) {
        if (stays(c)) {
            encoded += c;
            continue;
        }
        const std::array<std::uint8_t, 1> byte{static_cast<std::uint8_t>(c)};
        encoded += '%' + to_hex(byte);
    }
    return encoded;
}

}  // namespace

std::string folder_name(const LockName& name) {
    std::string encoded = std::string(readable) + percent_encoded(name.text());
    if (encoded.size() <= longest) return encoded;
    const std::string& text = name.text();
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    return std::string(hashed) + to_hex(sha256(bytes));
}

bool may_begin_with(std::string_view folder, std::string_view prefix) {
    // Every byte is encoded by itself, so prefixes stay prefixes.
    return !folder.starts_with(readable) || folder.substr(readable.size()).starts_with(percent_encoded(prefix));
}

bool is_folder_name(std::string_view folder) { return folder.starts_with(readable) || folder.starts_with(hashed); }

}  // namespace holdfast::stores::file
